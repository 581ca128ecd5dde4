//! A selection of a leaf's samples, in any order.

use super::leaf::{Leaf, Scratch};
use crate::column::Numbers;
use crate::error::{Error, Result};
use crate::sync::Arc;

/// The samples of a leaf at some indices, which may repeat.
#[derive(Debug)]
pub struct Select {
    from: Arc<Leaf>,
    indices: Numbers,
}

impl Select {
    /// Selects the samples of `from` at `indices`.
    ///
    /// # Errors
    ///
    /// [`Error::Index`]: an index outside of `from`; negative ones do not count from the end.
    pub fn new(from: Arc<Leaf>, indices: Numbers) -> Result<Select> {
        let select = Select { from, indices };
        (0..select.len()).try_for_each(|index| select.index(index).map(drop))?;
        Ok(select)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Returns the leaf that samples are selected from.
    pub fn from(&self) -> &Arc<Leaf> {
        &self.from
    }

    /// Returns the index in [`Select::from`] of the sample at `index`.
    pub(super) fn index(&self, index: usize) -> Result<usize> {
        let (at, len) = (self.indices.get(index), self.from.len());
        let place = usize::try_from(at).ok().filter(|&place| place < len);
        place.ok_or_else(|| Error::Index { index: at, len })
    }

    /// Returns the indices in [`Select::from`] of the samples at `indices`.
    pub(super) fn indices(&self, indices: &[usize]) -> Result<Vec<usize>> {
        indices.iter().map(|&index| self.index(index)).collect()
    }

    /// Copies samples as [`Leaf::gather`] does.
    pub(super) fn gather(
        &self,
        indices: &[usize],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let mut mapped = scratch.indices();
        for &index in indices {
            mapped.push(self.index(index)?);
        }
        let gathered = self.from.gather(&mapped, scratch, out);
        scratch.keep(mapped);
        gathered
    }
}
