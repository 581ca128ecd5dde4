//! Text and bytes: those of all samples, joined.

use super::{Ragged, Table, Values};
use crate::error::Result;
use crate::memory::fallible::boxed;

/// Bytes in memory, and the range of each sample.
#[derive(Clone, Debug)]
pub struct Binary {
    bytes: Ragged,
    values: Values,
}

impl Binary {
    /// Takes joined bytes whose samples are `values`, text or bytes; None unless they are single bytes in one
    /// block.
    pub fn new(bytes: Ragged, values: Values) -> Option<Binary> {
        bytes.is_bytes().then_some(Binary { bytes, values })
    }
}

impl Table for Binary {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn values(&self) -> Values {
        self.values
    }

    fn bytes(&self, index: usize) -> Result<Box<[u8]>> {
        // Python may write to the memory at any time, so only the copy can be checked.
        boxed(self.bytes.bytes(index)?)
    }
}
