//! Samples of different lengths, joined in one array.

use std::ops::Range;

use super::rows::Scratch;
use super::{Numbers, Offsets, Rows};
use crate::error::Result;

/// How many samples ahead to prefetch.
const AHEAD: usize = 8;

/// An array of values, and the range of each sample.
#[derive(Clone, Debug)]
pub struct Ragged {
    values: Rows,
    /// The rows of each sample.
    offsets: Offsets,
}

impl Ragged {
    /// Takes values and offsets, one more than there are samples.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets): there is no offset, or a sample exceeds the values.
    pub fn new(values: Rows, offsets: Numbers) -> Result<Ragged> {
        let offsets = Offsets::new(offsets, values.len())?;
        Ok(Ragged { values, offsets })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rows that samples consist of.
    pub fn values(&self) -> &Rows {
        &self.values
    }

    /// Returns the mean size of a sample, in bytes.
    pub fn mean_bytes(&self) -> usize {
        self.values.len() / self.len().max(1) * self.values.row_bytes()
    }

    /// Returns the number of rows of the longest sample.
    pub fn longest(&self) -> usize {
        self.offsets.longest()
    }

    /// Returns the rows of the sample at `index`, which must be below [`Ragged::len`].
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets): the owner of the offsets has changed them since.
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        self.offsets.range(index, self.values.len())
    }

    /// Returns the rows of the samples at `indices`, as [`Ragged::range`] does.
    ///
    /// # Errors
    ///
    /// As [`Ragged::range`].
    pub fn ranges(&self, indices: &[usize]) -> Result<Vec<Range<usize>>> {
        self.offsets.ranges(indices, self.values.len())
    }

    /// Prefetches the offsets of the sample at `index`, which are read soon.
    pub fn prefetch_range(&self, index: usize) {
        self.offsets.prefetch(index);
    }

    /// Prefetches the sample at `index`, which is read soon.
    pub fn prefetch(&self, index: usize) {
        if let Ok(range) = self.range(index) {
            self.values.prefetch(range);
        }
    }

    /// Copies the samples at `indices`, whose common length must fill `out`.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets): the owner of the offsets has changed them since.
    pub fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let bytes = out.len() / indices.len().max(1);
        if bytes == 0 {
            return Ok(());
        }
        for (at, (&index, sample)) in indices.iter().zip(out.chunks_exact_mut(bytes)).enumerate() {
            if let Some(&ahead) = indices.get(at + AHEAD) {
                self.prefetch(ahead);
            }
            let range = self.range(index)?;
            if range.len() * self.values.row_bytes() != bytes {
                return Err(self.offsets.changed(index, self.values.len()));
            }
            self.values.copy_range(range, scratch, sample);
        }
        Ok(())
    }

    /// Prefetches rows, which are copied soon.
    pub fn prefetch_rows(&self, rows: Range<usize>) {
        self.values.prefetch(rows);
    }

    /// Copies rows that [`Ragged::range`] returned.
    pub fn copy_rows(&self, rows: Range<usize>, scratch: &mut Scratch, out: &mut [u8]) {
        self.values.copy_range(rows, scratch, out);
    }

    /// Returns the bytes of the sample at `index`; the values must be single bytes in one block.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error): the owner of the offsets has changed them since.
    pub fn bytes(&self, index: usize) -> Result<&[u8]> {
        let block = self.values.block(self.range(index)?);
        Ok(block.unwrap_or_else(|| unreachable!("one block, by `is_bytes`")))
    }

    /// Returns true if samples are bytes that lie one after the other.
    pub(super) fn is_bytes(&self) -> bool {
        let bytes = self.values.dtype() == crate::memory::Dtype::UInt8;
        bytes && self.values.row_shape().is_empty() && self.values.is_block()
    }
}
