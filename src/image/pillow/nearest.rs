//! Pillow's nearest pixel: the one at the output's centre.

use std::ops::Range;

/// Fills `positions` with the source index for each output in `window`.
///
/// As in Pillow's `ImagingScaleAffine`, the position accumulates by repeated addition, with rounding errors,
/// so all outputs before the window are stepped through too.
#[allow(clippy::cast_sign_loss)] // positions are sums of positive steps
pub(in crate::image) fn positions(
    from: usize,
    to: usize,
    window: Range<usize>,
    positions: &mut Vec<usize>,
) {
    let step = from as f64 / to as f64;
    let mut at = step * 0.5;
    positions.clear();
    for output in 0..window.end {
        if output >= window.start {
            positions.push((at as usize).min(from - 1));
        }
        at += step;
    }
}
