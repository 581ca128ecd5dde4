//! Lists of a column's samples, of varying length.

use std::ops::Range;

use super::{Column, Kind, Layout, Numbers, Offsets, Scratch};
use crate::collate::{Shape, sizes};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// A column, and the range of its samples that each list consists of.
#[derive(Debug)]
pub struct Lists {
    items: Arc<dyn Column>,
    offsets: Offsets,
    layout: Layout,
}

impl Lists {
    /// Makes lists of the samples of `items`; there is one offset more than there are lists.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: a list exceeds `items`; [`Error::Parts`]: items that are decoded.
    pub fn new(items: Arc<dyn Column>, offsets: Numbers) -> Result<Lists> {
        let layout = items.layout();
        if layout.fetches || matches!(layout.nesting.1, Kind::Image | Kind::Array) {
            let (first, other) = ("an item of a list".into(), layout.describe());
            return Err(Error::Parts { first, other });
        }
        let offsets = Offsets::new(offsets, items.len())?;
        let layout = Layout::lists(layout);
        Ok(Lists {
            items,
            offsets,
            layout,
        })
    }

    /// Returns the column of which lists consist.
    pub fn items(&self) -> &dyn Column {
        &*self.items
    }

    /// Returns the items of the sample at `index`, which must be below their number.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: the owner of the offsets has changed them since.
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        self.offsets.range(index, self.items.len())
    }

    /// Returns the error of a sample that changed after its memory in a batch was allocated.
    pub fn changed(&self, index: usize) -> Error {
        self.offsets.changed(index, self.items.len())
    }
}

impl Column for Lists {
    fn len(&self) -> usize {
        self.offsets.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
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

    fn sample_bytes(&self) -> usize {
        self.items.len() / self.len().max(1) * self.items.sample_bytes()
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let bytes = out.len() / indices.len().max(1);
        if bytes == 0 {
            return Ok(());
        }
        let samples = indices.iter().zip(out.chunks_exact_mut(bytes));
        for (place, (&index, sample)) in samples.enumerate() {
            let range = self.range(index).map_err(|error| error.at(place))?;
            let item = bytes / range.len().max(1);
            let fits = self.items.layout().kind != Kind::Rows || item == self.items.sample_bytes();
            if !fits || item * range.len() != bytes {
                return Err(self.changed(index).at(place));
            }
            let mut items = scratch.indices();
            items.extend(range);
            let gathered = self.items.gather(&items, scratch, sample);
            scratch.keep(items);
            gathered.map_err(|error| error.placed().1.at(place))?; // of the sample, not of an item
        }
        Ok(())
    }

    fn lists(&self) -> Option<&Lists> {
        Some(self)
    }
}
