//! Samples of different lengths, joined in one array.

use std::ops::Range;
use std::sync::Arc;

use super::{Column, Layout, Numbers, Offsets, Rows, Scratch};
use crate::collate::{Shape, sizes};
use crate::error::Result;
use crate::memory::Dtype;
use crate::memory::fallible::boxed;

/// Number of samples to prefetch ahead.
const AHEAD: usize = 8;

/// An array of values, and the range of each sample.
#[derive(Clone, Debug)]
pub struct Ragged {
    values: Rows,
    /// The rows of each sample.
    offsets: Offsets,
    layout: Arc<Layout>,
}

impl Ragged {
    /// Takes values and offsets, one more than there are samples.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets): there is no offset, or a sample exceeds the values.
    pub fn new(values: Rows, offsets: Numbers) -> Result<Ragged> {
        let offsets = Offsets::new(offsets, values.len())?;
        let layout = Layout::ragged(values.dtype(), values.row_shape());
        Ok(Ragged {
            values,
            offsets,
            layout: Arc::new(layout),
        })
    }

    /// Returns the rows that samples consist of.
    pub fn values(&self) -> &Rows {
        &self.values
    }

    /// Returns the rows of the sample at `index`, which must be below their number.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets): the owner of the offsets has changed them since.
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        self.offsets.range(index, self.values.len())
    }

    /// Prefetches rows, which are copied soon.
    pub fn prefetch_rows(&self, rows: Range<usize>) {
        self.values.prefetch_rows(rows);
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
    pub(crate) fn block(&self, index: usize) -> Result<&[u8]> {
        let block = self.values.block(self.range(index)?);
        Ok(block.unwrap_or_else(|| unreachable!("one block, by `is_bytes`")))
    }

    /// Returns true if samples are bytes that lie one after the other.
    pub(super) fn is_bytes(&self) -> bool {
        let bytes = self.values.dtype() == Dtype::UInt8;
        bytes && self.values.row_shape().is_empty() && self.values.is_block()
    }
}

impl Column for Ragged {
    fn len(&self) -> usize {
        self.offsets.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        let rows = self.range(index)?.len();
        Ok(Some(sizes(rows, self.values.row_shape())))
    }

    fn longest(&self) -> Option<usize> {
        Some(self.offsets.longest())
    }

    fn sample_bytes(&self) -> usize {
        self.values.len() / self.len().max(1) * self.values.row_bytes()
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let bytes = out.len() / indices.len().max(1);
        if bytes == 0 {
            return Ok(());
        }
        for (at, (&index, sample)) in indices.iter().zip(out.chunks_exact_mut(bytes)).enumerate() {
            if let Some(&ahead) = indices.get(at + AHEAD) {
                self.prefetch(ahead);
            }
            let range = self.range(index).map_err(|error| error.at(at))?;
            if range.len() * self.values.row_bytes() != bytes {
                return Err(self.offsets.changed(index, self.values.len()).at(at));
            }
            self.values.copy_range(range, scratch, sample);
        }
        Ok(())
    }

    fn prefetch_shape(&self, index: usize) {
        self.offsets.prefetch(index);
    }

    fn prefetch(&self, index: usize) {
        if let Ok(range) = self.range(index) {
            self.values.prefetch_rows(range);
        }
    }

    fn ragged(&self) -> Option<&Ragged> {
        Some(self)
    }

    fn ranges(&self, indices: &[usize]) -> Result<Option<Vec<Range<usize>>>> {
        self.offsets.ranges(indices, self.values.len()).map(Some)
    }
}

/// Text or bytes: those of all samples, joined, and the range of each.
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
