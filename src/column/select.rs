//! A selection of a column's samples, in any order.

use std::ops::Range;

use super::{Column, Layout, Numbers, Ragged, Scratch};
use crate::collate::Shape;
use crate::error::{Error, Result};
use crate::sync::Arc;

/// The samples of a column at some indices, which may repeat.
#[derive(Debug)]
pub struct Select {
    from: Arc<dyn Column>,
    indices: Numbers,
}

impl Select {
    /// Selects the samples of `from` at `indices`.
    ///
    /// # Errors
    ///
    /// [`Error::Index`]: an index outside of `from`; negative ones do not count from the end.
    pub fn new(from: Arc<dyn Column>, indices: Numbers) -> Result<Select> {
        let select = Select { from, indices };
        (0..select.len()).try_for_each(|index| select.index(index).map(drop))?;
        Ok(select)
    }

    /// Returns the index of a sample in the column that it is selected from.
    fn index(&self, index: usize) -> Result<usize> {
        let (at, len) = (self.indices.get(index), self.from.len());
        let place = usize::try_from(at).ok().filter(|&place| place < len);
        place.ok_or_else(|| Error::Index { index: at, len })
    }

    fn indices(&self, indices: &[usize]) -> Result<Vec<usize>> {
        indices.iter().map(|&index| self.index(index)).collect()
    }
}

impl Column for Select {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn layout(&self) -> &Layout {
        self.from.layout()
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        self.from.shape(self.index(index)?)
    }

    fn longest(&self) -> Option<usize> {
        self.from.longest()
    }

    fn sample_bytes(&self) -> usize {
        self.from.sample_bytes()
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let mut mapped = scratch.indices();
        for &index in indices {
            mapped.push(self.index(index)?);
        }
        let gathered = self.from.gather(&mapped, scratch, out);
        scratch.keep(mapped);
        gathered
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        self.from.bytes(&self.indices(indices)?)
    }

    fn texts(&self, indices: &[usize]) -> Result<Vec<Box<str>>> {
        self.from.texts(&self.indices(indices)?)
    }

    fn prefetch_shape(&self, index: usize) {
        if let Ok(index) = self.index(index) {
            self.from.prefetch_shape(index);
        }
    }

    fn prefetch(&self, index: usize) {
        if let Ok(index) = self.index(index) {
            self.from.prefetch(index);
        }
    }

    fn source(&self, index: usize) -> Result<Option<(&dyn Column, usize)>> {
        Ok(Some((&*self.from, self.index(index)?)))
    }

    fn ragged(&self) -> Option<&Ragged> {
        self.from.ragged()
    }

    fn ranges(&self, indices: &[usize]) -> Result<Option<Vec<Range<usize>>>> {
        match self.ragged() {
            Some(_) => self.from.ranges(&self.indices(indices)?),
            None => Ok(None),
        }
    }
}
