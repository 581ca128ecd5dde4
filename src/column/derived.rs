//! Columns without samples of their own: a selection of another column's, in any order; several columns, one after the
//! other. What a [`Column`] says of one sample, its source says.

use std::ops::Range;

use super::{Column, Kind, Layout, Numbers, Ragged, Scratch};
use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::sync::Arc;

/// Number of samples to prefetch ahead.
const AHEAD: usize = 16;

/// Returns the column that holds the sample at `index`, below its length, and the index in it: neither a selection
/// nor a concatenation.
pub fn holder(column: &dyn Column, index: usize) -> Result<(&dyn Column, usize)> {
    let (mut column, mut index) = (column, index);
    while let Some(next) = column.source(index)? {
        (column, index) = next;
    }
    Ok((column, index))
}

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
        let places = indices.iter().enumerate();
        let mapped = places.map(|(at, &index)| self.index(index).map_err(|error| error.at(at)));
        mapped.collect()
    }
}

impl Column for Select {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn layout(&self) -> &Layout {
        self.from.layout()
    }

    fn longest(&self) -> Option<usize> {
        self.from.longest()
    }

    fn sample_bytes(&self) -> usize {
        self.from.sample_bytes()
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let mut mapped = scratch.indices();
        for (at, &index) in indices.iter().enumerate() {
            mapped.push(self.index(index).map_err(|error| error.at(at))?);
        }
        let gathered = self.from.gather(&mapped, scratch, out);
        scratch.keep(mapped);
        gathered
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        self.from.bytes(&self.indices(indices)?)
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

/// Columns of one kind and dtype; their shapes may differ where samples are not rows.
#[derive(Debug)]
pub struct Concat {
    parts: Vec<Arc<dyn Column>>,
    /// Index after the last sample of each part.
    ends: Vec<usize>,
    layout: Layout,
}

impl Concat {
    /// Puts columns one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Parts`]: columns of different kinds, dtypes or row shapes, or none at all.
    pub fn new(parts: Vec<Arc<dyn Column>>) -> Result<Concat> {
        let Some(first) = parts.first() else {
            let (first, other) = ("nothing".into(), "nothing".into());
            return Err(Error::Parts { first, other });
        };
        let mut layout = first.layout().clone();
        for part in &parts {
            let other = part.layout();
            if (other.nesting, other.dtype, &other.row_shape)
                != (layout.nesting, layout.dtype, &layout.row_shape)
            {
                return Err(Error::Parts {
                    first: first.layout().describe(),
                    other: other.describe(),
                });
            }
            if other.shape != layout.shape {
                layout.shape = None;
            }
            layout.fetches |= other.fetches;
            layout.is_random |= other.is_random;
            layout.is_pixels &= other.is_pixels;
        }
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        });
        let ends = ends.collect();
        Ok(Concat {
            parts,
            ends,
            layout,
        })
    }

    /// Returns the column that holds the sample at `index`, and the sample's index in it.
    fn at(&self, index: usize) -> (&dyn Column, usize) {
        let part = self.number(index);
        (&*self.parts[part], index - self.start(part))
    }

    fn number(&self, index: usize) -> usize {
        self.ends.partition_point(|&end| end <= index)
    }

    fn start(&self, part: usize) -> usize {
        part.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl Column for Concat {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn longest(&self) -> Option<usize> {
        let mut parts = self.parts.iter();
        parts.try_fold(0, |longest, part| Some(part.longest()?.max(longest)))
    }

    fn sample_bytes(&self) -> usize {
        match self.layout.kind {
            Kind::Ragged | Kind::Lists => self.parts[0].sample_bytes(),
            _ => self.layout.sample_bytes(),
        }
    }

    /// Copies neighbours in one part with one call.
    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let row_bytes = out.len() / indices.len().max(1);
        let (mut at, mut asked, mut out) = (0, 0, out);
        while let Some(&index) = indices.get(at) {
            let part = self.number(index);
            let range = self.start(part)..self.ends[part];
            let run = indices[at..]
                .iter()
                .take_while(|index| range.contains(index));
            let mut mapped = scratch.indices();
            let late = usize::from(part > 0 && planted(Bug::ShardOffByOne));
            mapped.extend(run.map(|index| (index - range.start).saturating_sub(late)));
            let end = at + mapped.len();
            if mapped.len() < AHEAD {
                // A part prefetches only within its own run, which is too late for short runs.
                let soon = indices.len().min(end + AHEAD);
                for &index in &indices[asked.max(at).min(soon)..soon] {
                    let (part, at) = self.at(index);
                    part.prefetch(at);
                }
                asked = soon;
            }
            let (rows, after) = out.split_at_mut(mapped.len() * row_bytes);
            let gathered = self.parts[part].gather(&mapped, scratch, rows);
            gathered.map_err(|error| error.at(at))?;
            (at, out) = (end, after);
            scratch.keep(mapped);
        }
        Ok(())
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        let mut all = Vec::with_capacity(indices.len());
        for (place, &index) in indices.iter().enumerate() {
            let (part, at) = self.at(index);
            all.extend(part.bytes(&[at]).map_err(|error| error.at(place))?);
        }
        Ok(all)
    }

    fn source(&self, index: usize) -> Result<Option<(&dyn Column, usize)>> {
        Ok(Some(self.at(index)))
    }
}
