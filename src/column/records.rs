//! Records of one size in binary files, of which each sample is a part.

use super::{Column, Flat, Layout, Scratch};
use crate::error::{Error, Result};

/// Arrays of one shape at equal distances, in one file after the other.
#[derive(Debug)]
pub struct Records {
    flat: Flat,
    layout: Layout,
    /// Elements of a sample.
    elements: usize,
    /// Bytes of a record.
    stride: u64,
    /// The first byte of a file's first sample.
    first: u64,
    /// Number of records in each file and all before it.
    ends: Vec<usize>,
}

impl Records {
    /// Takes files that begin with a header of `offset` bytes, and then are records of `stride` bytes: of each,
    /// the array of `shape` that begins at its byte `start`.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: after its header, a file is not a whole number of records. [`Error::Transform`]: the array
    /// does not fit into a record.
    pub fn new(
        flat: Flat,
        shape: &[usize],
        stride: u64,
        start: u64,
        offset: u64,
    ) -> Result<Records> {
        let itemsize = flat.stored().itemsize();
        let bytes = shape
            .iter()
            .try_fold(itemsize, |all: usize, &n| all.checked_mul(n));
        let end = bytes.and_then(|bytes| start.checked_add(bytes as u64));
        if end.is_none_or(|end| end > stride) || stride == 0 {
            return Err(Error::Transform {
                what: format!(
                    "take an array of shape {shape:?} and dtype {} from byte {start} of records",
                    flat.stored().name()
                ),
                reason: format!("a record has {stride} bytes"),
            });
        }
        let mut records = 0;
        let ends = (0..flat.len()).map(|at| {
            let bytes = flat.bytes(at);
            let all = bytes.checked_sub(offset);
            let Some(all) = all.filter(|all| all % stride == 0) else {
                let reason = format!(
                    "it has {bytes} bytes, which are not a header of {offset} and records of {stride} each"
                );
                return Err(Error::decode(reason).of_file(flat.path(at)));
            };
            records += (all / stride) as usize;
            Ok(records)
        });
        Ok(Records {
            ends: ends.collect::<Result<_>>()?,
            layout: Layout::rows(flat.dtype(), shape),
            elements: shape.iter().product(),
            stride,
            first: offset.saturating_add(start), // overflows only if there is no record
            flat,
        })
    }
}

impl Column for Records {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let place = |at: usize| {
            let index = indices[at];
            let file = self.ends.partition_point(|&end| end <= index);
            let before = file.checked_sub(1).map_or(0, |file| self.ends[file]);
            (file, self.first + (index - before) as u64 * self.stride)
        };
        self.flat.gather(indices.len(), self.elements, place, out)
    }
}
