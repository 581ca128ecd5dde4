//! Scaling without weights: each pixel is one of the source's.

use std::ops::Range;

use super::resample::{Axis, Scaling};
use super::{Frame, Pixels, Region};
use crate::Result;
use crate::memory::fallible::reserve_growing;

/// Fills a list with the source index for each output of a range.
pub(super) type Positions = fn(Axis, Range<usize>, &mut Vec<usize>);

/// The source rows and columns of a window.
#[derive(Debug, Default)]
pub(super) struct Nearest {
    rows: Vec<usize>,
    columns: Vec<usize>,
}

impl Nearest {
    /// Computes the rows and columns; returns the ranges that they lie in.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`](crate::Error::Memory), without a path.
    pub(super) fn prepare(
        &mut self,
        scaling: &Scaling,
        positions: Positions,
    ) -> Result<(Range<usize>, Range<usize>)> {
        reserve(&mut self.rows, scaling.rows())?;
        reserve(&mut self.columns, scaling.columns())?;
        positions(scaling.height, scaling.rows(), &mut self.rows);
        positions(scaling.width, scaling.columns(), &mut self.columns);
        Ok((span(&self.rows), span(&self.columns)))
    }

    /// Copies the pixels to `target`; `source` is the region `reach` of the image.
    pub(super) fn run(&mut self, source: Pixels<'_>, reach: Region, target: &mut Frame) {
        for column in &mut self.columns {
            *column -= reach.left;
        }
        for (row, into) in self.rows.iter().zip(target.rows_mut()) {
            let from = source.row(row - reach.top);
            match source.channels() {
                3 => pick::<3>(from, &self.columns, into),
                _ => pick::<1>(from, &self.columns, into),
            }
        }
    }
}

/// Copies the pixels of `C` bytes at `columns`.
fn pick<const C: usize>(source: &[u8], columns: &[usize], target: &mut [u8]) {
    let pixels = source.as_chunks::<C>().0;
    for (into, &column) in target.as_chunks_mut::<C>().0.iter_mut().zip(columns) {
        *into = pixels[column];
    }
}

/// Reserves room for the positions of `window`.
fn reserve(positions: &mut Vec<usize>, window: Range<usize>) -> Result<()> {
    positions.clear();
    reserve_growing(positions, window.len())
}

/// Returns the range of ascending positions.
fn span(positions: &[usize]) -> Range<usize> {
    match (positions.first(), positions.last()) {
        (Some(&first), Some(&last)) => first..last + 1,
        _ => 0..0,
    }
}
