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

/// Pillow's nearest pixel: the one at the output's centre.
///
/// As in Pillow's `ImagingScaleAffine`, the position accumulates by repeated addition, with rounding errors,
/// so all outputs before the window are stepped through too.
#[allow(clippy::cast_sign_loss)] // positions are sums of positive steps
pub(super) fn pillow_centers(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let (start, end) = axis.sides;
    let step = f64::from(end - start) / axis.to as f64;
    let mut at = f64::from(start) + step * 0.5;
    positions.clear();
    for output in 0..window.end {
        if output >= window.start {
            positions.push((at as usize).min(axis.from - 1));
        }
        at += step;
    }
}

/// torch's `nearest`, as `nearest_idx` of `UpSample.h` has it. Positions are in single precision; each rounding is
/// torch's.
pub(super) fn torch_corners(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let scale = axis.from as f32 / axis.to as f32;
    fill(axis.from, window, positions, |output| output as f32 * scale);
}

/// torch's `nearest-exact`, as `HelperInterpNearestExact` of `UpSampleKernel.cpp` has it where it is
/// compiled for AVX2: multiplication and subtraction are one instruction.
pub(super) fn torch_centers(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let scale = axis.from as f32 / axis.to as f32;
    fill(axis.from, window, positions, |output| {
        let at = scale.mul_add(output as f32 + 0.5, -0.5).max(0.0);
        (f64::from(at) + 0.5) as f32
    });
}

/// The same for `nearest-exact`, as `nearest_exact_idx` of `UpSample.h` has it.
pub(super) fn torch_small_centers(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let scale = f64::from(axis.from as f32 / axis.to as f32);
    fill(axis.from, window, positions, |output| {
        ((output as f64 + 0.5) * scale) as f32
    });
}

#[allow(clippy::cast_sign_loss)] // positions are not negative
fn fill(from: usize, window: Range<usize>, positions: &mut Vec<usize>, at: impl Fn(usize) -> f32) {
    positions.clear();
    positions.extend(window.map(|output| (at(output) as usize).min(from - 1)));
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
