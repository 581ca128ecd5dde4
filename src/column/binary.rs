//! Text and bytes: those of all samples, joined.

use super::{Column, Layout, Ragged};
use crate::error::Result;
use crate::memory::fallible::boxed;

/// Bytes in memory, and the range of each sample.
#[derive(Clone, Debug)]
pub struct Binary {
    bytes: Ragged,
    layout: Layout,
}

impl Binary {
    /// Takes joined bytes whose samples are `values`, text or bytes; None unless they are single bytes in one
    /// block.
    pub fn new(bytes: Ragged, layout: Layout) -> Option<Binary> {
        bytes.is_bytes().then_some(Binary { bytes, layout })
    }
}

impl Column for Binary {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        let places = indices.iter().enumerate();
        let all = places.map(|(place, &index)| {
            // Python may write to the memory at any time, so only the copy can be checked.
            let copied = self.bytes.block(index).and_then(boxed);
            copied.map_err(|error| error.at(place))
        });
        all.collect()
    }
}
