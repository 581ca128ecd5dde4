//! torch's nearest pixels. Positions are in single precision; each rounding is torch's.

use std::ops::Range;

use crate::image::resample::Axis;

/// Fills `positions` with the source's index for each output in `window`, as `nearest_idx` of
/// `UpSample.h` has it.
pub(super) fn corners(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let scale = axis.from as f32 / axis.to as f32;
    fill(axis.from, window, positions, |output| output as f32 * scale);
}

/// The same for `nearest-exact`, as `HelperInterpNearestExact` of `UpSampleKernel.cpp` has it where it is
/// compiled for AVX2: multiplication and subtraction are one instruction.
pub(super) fn centers(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
    let scale = axis.from as f32 / axis.to as f32;
    fill(axis.from, window, positions, |output| {
        let at = scale.mul_add(output as f32 + 0.5, -0.5).max(0.0);
        (f64::from(at) + 0.5) as f32
    });
}

/// The same for `nearest-exact`, as `nearest_exact_idx` of `UpSample.h` has it.
pub(super) fn small_centers(axis: Axis, window: Range<usize>, positions: &mut Vec<usize>) {
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
