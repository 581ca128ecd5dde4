//! One pass of a resize: the weights of a dimension, and the scaling of rows with them.
//!
//! Owns the scalar code, and the division of rows between it and vector code. Invariant: both give the same
//! bytes.

use std::f64::consts::PI;
use std::fmt::Debug;
use std::ops::Range;

use super::resample::Axis;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::vector::{LANES, ROWS, Vector, across_rows, down_row_wide};
use super::{Frame, Pixels};
use crate::Result;

/// Bits of the low part of a weight that is split for 16-bit multiplication.
pub(super) const LOW_BITS: u32 = 15;

/// The weights of one dimension, in fixed point, as one library rounds them.
pub(super) trait Weights: Debug + Default {
    /// The parameters of the weights, besides sizes.
    type Filter: Copy;

    /// An integer of 16 or 32 bits.
    type Weight: Copy + Into<i32>;

    /// Computes the weights for scaling a dimension, of the outputs in `window`.
    fn prepare(&mut self, axis: Axis, filter: Self::Filter, window: Range<usize>) -> Result<()>;

    /// Returns the source pixels of each output of the window.
    fn spans(&self) -> &[Span];

    /// Returns the fraction bits of the weights.
    fn bits(&self) -> u32;

    /// Returns the weights of an output, as many as its span has pixels.
    fn weights(&self, output: usize) -> &[Self::Weight];

    /// Returns the weights of an output in pairs, the last one of an odd number with a zero. Weights of 32 bits
    /// are split: each pair of low parts, of [`LOW_BITS`], comes before the pair of high parts.
    #[cfg(target_arch = "x86_64")]
    fn pairs(&self, output: usize) -> &[[i16; 2]];

    /// Scales one row of pixels of `C` channels in scalar code. The weights count pixels from `left` pixels
    /// before the first of `source`.
    fn across_row<const C: usize>(&self, source: &[u8], left: usize, target: &mut [u8]) {
        let bits = self.bits();
        for (output, (pixel, span)) in target.chunks_exact_mut(C).zip(self.spans()).enumerate() {
            let mut sums = [1 << (bits - 1); C];
            let pixels = source[(span.start - left) * C..].chunks_exact(C);
            for (&weight, from) in self.weights(output).iter().zip(pixels) {
                for (sum, &value) in sums.iter_mut().zip(from) {
                    *sum = plus(*sum, weight, value);
                }
            }
            for (value, sum) in pixel.iter_mut().zip(sums) {
                *value = clip(sum, bits);
            }
        }
    }

    /// Computes row `output` as a weighted sum of rows, in scalar code. `source` starts at the first of them;
    /// rows begin every `stride` bytes.
    fn down_row(&self, source: &[u8], stride: usize, output: usize, target: &mut [u8]) {
        let bits = self.bits();
        for (at, value) in target.iter_mut().enumerate() {
            let mut sum = 1 << (bits - 1);
            for (row, &weight) in self.weights(output).iter().enumerate() {
                sum = plus(sum, weight, source[row * stride + at]);
            }
            *value = clip(sum, bits);
        }
    }

    /// Scales every row of `source` along its length. The weights count pixels from `left` pixels before the
    /// first of `source`.
    fn across(&self, source: Pixels<'_>, left: usize, target: &mut Frame) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if source.channels() == 3
            && source.height() >= ROWS
            && let Some(vector) = Vector::detect()
        {
            return in_groups(target, |first, targets| {
                let rows = (source.onward(first), source.stride());
                across_rows(vector, self, rows, left, targets);
            });
        }
        for (row, into) in source.rows().zip(target.rows_mut()) {
            match source.channels() {
                3 => self.across_row::<3>(row, left, into),
                _ => self.across_row::<1>(row, left, into),
            }
        }
    }

    /// Computes rows as weighted sums of rows of `source`. The weights count rows from `above` rows above the
    /// first of `source`.
    fn down(&self, source: Pixels<'_>, above: usize, target: &mut Frame) {
        for (output, (span, into)) in self.spans().iter().zip(target.rows_mut()).enumerate() {
            let from = source.onward(span.start - above);
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            if into.len() >= LANES
                && let Some(vector) = Vector::detect()
            {
                down_row_wide(vector, self, from, source.stride(), output, into);
                continue;
            }
            self.down_row(from, source.stride(), output, into);
        }
    }
}

/// Adds a weighted value to a sum, which wraps as Pillow's do; torch's never overflow.
fn plus(sum: i32, weight: impl Into<i32>, value: u8) -> i32 {
    sum.wrapping_add(weight.into().wrapping_mul(i32::from(value)))
}

/// Drops the fraction of a sum.
#[allow(clippy::cast_sign_loss)] // clamped
fn clip(sum: i32, bits: u32) -> u8 {
    (sum >> bits).clamp(0, 255) as u8
}

/// Returns sin(πx) / πx: Lanczos filters are products of it.
pub(super) fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}

/// Convolution kernel of Keys (1981).
#[allow(clippy::suboptimal_flops)] // a fused multiply would round once where Pillow and torch round twice
pub(super) fn cubic(x: f64, a: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

/// The source pixels of one output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The first.
    pub(super) start: usize,
    /// Their number; at least one.
    pub(super) len: usize,
}

/// Calls `scale` for the rows of `target` in groups, with the number of each group's first row. If their
/// number is not a multiple of the group size, the last group overlaps the one before.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn in_groups(target: &mut Frame, mut scale: impl FnMut(usize, [&mut [u8]; ROWS])) {
    let last = target.shape().height - ROWS;
    let mut first = 0;
    loop {
        let mut rows = target.rows_mut().skip(first);
        scale(first, [(); ROWS].map(|()| rows.next().unwrap_or_default()));
        if first == last {
            break;
        }
        first = (first + ROWS).min(last);
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::image::torch::Interpolation;
    use crate::image::{Filter, Shape, pillow, torch};

    const PILLOW: [Filter; 5] = [
        Filter::Box,
        Filter::Bilinear,
        Filter::Hamming,
        Filter::Bicubic,
        Filter::Lanczos,
    ];
    const TORCH: [Interpolation; 5] = [
        Interpolation::Bilinear,
        Interpolation::Bicubic,
        Interpolation::Lanczos,
        Interpolation::AliasedBilinear,
        Interpolation::AliasedBicubic,
    ];

    fn noise(seed: u64, bytes: &mut [u8]) {
        let mut state = seed | 1;
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Include runs of extreme values: they reach the clip on both ends.
            *byte = match state >> 62 {
                0 => 0,
                1 => 255,
                _ => (state >> 40) as u8,
            };
        }
    }

    /// Compares the vector passes over `from` pixels with the scalar ones; rows that are scaled vertically
    /// have `wide` bytes.
    fn passes_agree<W: Weights>(
        (from, to): (usize, usize),
        filter: W::Filter,
        wide: usize,
        seed: u64,
    ) -> std::result::Result<(), TestCaseError> {
        let Some(vector) = Vector::detect() else {
            return Ok(());
        };
        let mut weights = W::default();
        weights
            .prepare(Axis::whole(from, to), filter, 0..to)
            .expect("room for weights");

        let mut frame = Frame::default();
        frame
            .reset(Shape::new(ROWS, from, 3))
            .expect("room for pixels");
        noise(seed, frame.pixels_mut());
        let mut made = [(); ROWS].map(|()| vec![0; to * 3]);
        let source = (frame.view().onward(0), frame.stride());
        across_rows(
            vector,
            &weights,
            source,
            0,
            made.each_mut().map(Vec::as_mut_slice),
        );
        for (row, made) in frame.view().rows().zip(made) {
            let mut plain = vec![0; to * 3];
            weights.across_row::<3>(row, 0, &mut plain);
            prop_assert_eq!(made, plain);
        }

        let mut tall = vec![0; from * wide];
        noise(seed, &mut tall);
        for output in 0..to {
            let source = &tall[weights.spans()[output].start * wide..];
            let (mut made, mut plain) = (vec![0; wide], vec![0; wide]);
            down_row_wide(vector, &weights, source, wide, output, &mut made);
            weights.down_row(source, wide, output, &mut plain);
            prop_assert_eq!(made, plain);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn vector_and_plain_passes_agree(
            sizes in (1_usize..300, 1_usize..300),
            pillow in prop::sample::select(&PILLOW),
            torch in prop::sample::select(&TORCH),
            wide in LANES..180,
            seed: u64,
        ) {
            passes_agree::<pillow::Taps>(sizes, pillow, wide, seed)?;
            passes_agree::<torch::Taps>(sizes, torch, wide, seed)?;
        }
    }
}
