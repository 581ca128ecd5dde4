//! Ranges of a file of tokens, of any lengths.

use super::{Column, Flat, Layout, Scratch};
use crate::collate::{Shape, sizes};
use crate::error::{Error, Result};

/// Documents of one file.
#[derive(Debug)]
pub struct Documents {
    layout: Layout,
    flat: Flat,
    /// First byte of each document.
    starts: Vec<u64>,
    /// Number of elements of each document.
    lengths: Vec<u32>,
}

impl Documents {
    /// Takes one file, and the first byte and the number of elements of each document.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: a document exceeds the file.
    ///
    /// # Panics
    ///
    /// If `starts` and `lengths` differ in length.
    pub fn new(flat: Flat, starts: Vec<u64>, lengths: Vec<u32>) -> Result<Documents> {
        assert_eq!(starts.len(), lengths.len(), "each document has a length");
        let (bytes, itemsize) = (flat.bytes(0), flat.stored().itemsize() as u64);
        for (index, (&start, &length)) in starts.iter().zip(&lengths).enumerate() {
            let end = start.checked_add(u64::from(length) * itemsize);
            if end.is_none_or(|end| end > bytes) {
                let reason = format!(
                    "by its index, document {index} is {length} elements from byte {start} on, and \
                     the file has {bytes} bytes"
                );
                return Err(Error::decode(reason).of_file(flat.path(0)));
            }
        }
        Ok(Documents {
            layout: Layout::ragged(flat.dtype(), &[]),
            flat,
            starts,
            lengths,
        })
    }
}

impl Column for Documents {
    fn len(&self) -> usize {
        self.starts.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        Ok(Some(sizes(self.lengths[index] as usize, &[])))
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let elements = indices.first().map_or(0, |&index| self.lengths[index]);
        let place = |at: usize| (0, self.starts[indices[at]]);
        self.flat
            .gather(indices.len(), elements as usize, place, out)
    }
}
