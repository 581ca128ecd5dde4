//! Scaling without weights: each pixel is the source's at its centre.

use std::ops::Range;

/// Fills `positions` with the source's index for each output in `window`.
///
/// Pillow's `ImagingScaleAffine`: the position is advanced by repeated addition, and rounding
/// errors with it, so all before the window are stepped through too.
#[allow(clippy::cast_sign_loss)] // positions are sums of positive steps
pub(super) fn positions(from: usize, to: usize, window: Range<usize>, positions: &mut Vec<usize>) {
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

/// Copies the pixels of one row from `columns`, `channels` bytes each.
pub(super) fn row(source: &[u8], columns: &[usize], channels: usize, target: &mut [u8]) {
    for (pixel, &column) in target.chunks_exact_mut(channels).zip(columns) {
        pixel.copy_from_slice(&source[column * channels..][..channels]);
    }
}
