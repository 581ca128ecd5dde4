//! Pillow's nearest pixel: the one at the output's centre.

use std::ops::Range;

use crate::image::resample::Axis;

/// Fills `positions` with the source index for each output in `window`.
///
/// As in Pillow's `ImagingScaleAffine`, the position accumulates by repeated addition, with rounding errors,
/// so all outputs before the window are stepped through too.
#[allow(clippy::cast_sign_loss)] // positions are sums of positive steps
pub(in crate::image) fn positions(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
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
