//! Both passes in scalar code: the reference for the vector versions, and the fallback without them.

use super::taps::Taps;
use crate::image::weights::Weights;

/// Scales one row of pixels of `C` channels; `source` starts `left` pixels after the first that the weights
/// count.
pub(super) fn across<const C: usize>(source: &[u8], left: usize, taps: &Taps, target: &mut [u8]) {
    let bits = taps.bits();
    for (output, (pixel, span)) in target.chunks_exact_mut(C).zip(taps.spans()).enumerate() {
        let mut sums = [1 << (bits - 1); C];
        let pixels = source[(span.start - left) * C..].chunks_exact(C);
        for (&weight, from) in taps.weights(output).iter().zip(pixels) {
            for (sum, &value) in sums.iter_mut().zip(from) {
                *sum += i32::from(weight) * i32::from(value);
            }
        }
        for (value, sum) in pixel.iter_mut().zip(sums) {
            *value = clip(sum, bits);
        }
    }
}

/// Computes row `output` as a weighted sum of rows. `source` starts at the first of them; rows begin every
/// `stride` bytes.
pub(super) fn down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
    let bits = taps.bits();
    for (at, value) in target.iter_mut().enumerate() {
        let mut sum = 1 << (bits - 1);
        for (row, &weight) in taps.weights(output).iter().enumerate() {
            sum += i32::from(weight) * i32::from(source[row * stride + at]);
        }
        *value = clip(sum, bits);
    }
}

#[allow(clippy::cast_sign_loss)] // clamped
fn clip(sum: i32, bits: u32) -> u8 {
    (sum >> bits).clamp(0, 255) as u8
}
