//! The samples of several leaves, one leaf after the other.

use super::leaf::{Leaf, Scratch};
use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::sync::Arc;

/// How many samples ahead to prefetch.
const AHEAD: usize = 16;

/// Leaves of one kind and dtype; their shapes may differ where samples are not rows.
#[derive(Debug)]
pub struct Concat {
    parts: Vec<Arc<Leaf>>,
    /// Index after the last sample of each part.
    ends: Vec<usize>,
    shape: Option<Vec<usize>>,
}

impl Concat {
    /// Puts leaves one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Parts`]: leaves of different kinds, dtypes or row shapes, or none at all.
    pub fn new(parts: Vec<Arc<Leaf>>) -> Result<Concat> {
        let Some(first) = parts.first() else {
            let (first, other) = ("nothing".into(), "nothing".into());
            return Err(Error::Parts { first, other });
        };
        let fits = |other: &Leaf| {
            (other.nesting(), other.dtype(), other.row_shape())
                == (first.nesting(), first.dtype(), first.row_shape())
        };
        if let Some(other) = parts.iter().find(|other| !fits(other)) {
            return Err(Error::Parts {
                first: first.describe(),
                other: other.describe(),
            });
        }
        let shape = first.fixed_shape();
        let is_fixed = parts.iter().all(|part| part.fixed_shape() == shape);
        let shape = shape.filter(|_| is_fixed);
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        });
        let ends = ends.collect();
        Ok(Concat { parts, ends, shape })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the leaves; at least one.
    pub fn parts(&self) -> &[Arc<Leaf>] {
        &self.parts
    }

    /// Returns the shape of every sample, if it is the same in all parts.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        self.shape.clone()
    }

    /// Returns the leaf that holds the sample at `index`, and the sample's index in it.
    pub(super) fn part(&self, index: usize) -> Result<(&Arc<Leaf>, usize)> {
        let part = self.number(index)?;
        Ok((&self.parts[part], index - self.start(part)))
    }

    /// Copies samples as [`Leaf::gather`] does; neighbours in one part with one call.
    pub(super) fn gather(
        &self,
        indices: &[usize],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let row_bytes = out.len() / indices.len().max(1);
        let (mut at, mut asked, mut out) = (0, 0, out);
        while let Some(&index) = indices.get(at) {
            let part = self.number(index)?;
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
                    let (part, at) = self.part(index)?;
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

    fn number(&self, index: usize) -> Result<usize> {
        let part = self.ends.partition_point(|&end| end <= index);
        if part == self.parts.len() {
            let (index, len) = (index.cast_signed() as i64, self.len());
            return Err(Error::Index { index, len });
        }
        Ok(part)
    }

    fn start(&self, part: usize) -> usize {
        part.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}
