//! Lists of a leaf's samples, of varying length.

use std::ops::Range;

use super::kind::Kind;
use super::leaf::{Leaf, Scratch};
use crate::collate::{Shape, sizes};
use crate::column::{Numbers, Offsets};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// A leaf, and the range of its samples that each list consists of.
#[derive(Debug)]
pub struct Lists {
    items: Arc<Leaf>,
    offsets: Offsets,
}

impl Lists {
    /// Makes lists of the samples of `items`; there is one offset more than there are lists.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: a list exceeds `items`; [`Error::Parts`]: items that are decoded.
    pub fn new(items: Arc<Leaf>, offsets: Numbers) -> Result<Lists> {
        if items.fetches() || matches!(items.nesting().1, Kind::Image | Kind::Array) {
            let (first, other) = ("an item of a list".into(), items.describe());
            return Err(Error::Parts { first, other });
        }
        let offsets = Offsets::new(offsets, items.len())?;
        Ok(Lists { items, offsets })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the leaf of which lists consist.
    pub fn items(&self) -> &Arc<Leaf> {
        &self.items
    }

    /// Returns the items of the sample at `index`, which must be below [`Lists::len`].
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: the owner of the offsets has changed them since.
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        self.offsets.range(index, self.items.len())
    }

    /// Returns the error of a sample that changed after its memory in a batch was allocated.
    pub(super) fn changed(&self, index: usize) -> Error {
        self.offsets.changed(index, self.items.len())
    }

    /// Returns the shape of the list at `index` as an array; None if it is empty, or its items are not arrays
    /// of one shape.
    pub(super) fn shape(&self, index: usize) -> Result<Option<Shape>> {
        let mut range = self.range(index)?;
        let len = range.len();
        let Some(first) = range.next() else {
            return Ok(None);
        };
        let Some(shape) = self.items.shape(first)? else {
            return Ok(None);
        };
        for item in range {
            if self.items.shape(item)?.as_ref() != Some(&shape) {
                return Ok(None);
            }
        }
        Ok(Some(sizes(len, &shape)))
    }

    /// Returns the mean size of a sample, in bytes.
    pub(super) fn mean_bytes(&self) -> usize {
        self.items.len() / self.len().max(1) * self.items.sample_bytes()
    }

    /// Copies lists that are arrays as [`Leaf::gather`] does.
    pub(super) fn gather(
        &self,
        indices: &[usize],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let bytes = out.len() / indices.len().max(1);
        if bytes == 0 {
            return Ok(());
        }
        for (&index, sample) in indices.iter().zip(out.chunks_exact_mut(bytes)) {
            let range = self.range(index)?;
            let item = bytes / range.len().max(1);
            let fits = self.items.kind() != Kind::Rows || item == self.items.sample_bytes();
            if !fits || item * range.len() != bytes {
                return Err(self.changed(index));
            }
            let mut items = scratch.indices();
            items.extend(range);
            let gathered = self.items.gather(&items, scratch, sample);
            scratch.keep(items);
            gathered?;
        }
        Ok(())
    }
}
