//! The weights of a convolution along one dimension, as torch rounds them to 16 bits.
//!
//! Owns `_compute_index_ranges_int16_weights` of `UpSampleKernel.cpp`. Invariant: the arrays agree with
//! `key`, and are computed again only when it changes.

use std::ops::Range;

use super::Interpolation;
use crate::Result;
use crate::image::resample::Axis;
use crate::image::weights::{Span, Weights};
use crate::memory::fallible::reserve_growing;

/// Maximum fraction bits of a weight.
const MOST_BITS: u32 = 22;

/// Spans and weights for a window of outputs.
#[derive(Debug, Default)]
pub(in crate::image) struct Taps {
    key: Option<(Axis, Interpolation, Range<usize>)>,
    /// Fraction bits of the weights.
    bits: u32,
    /// Pairs of weights kept per output.
    stride: usize,
    spans: Vec<Span>,
    /// Neighbouring weights; the last pairs of each output are padded with zeros.
    pairs: Vec<[i16; 2]>,
    /// Weights of the window, before rounding.
    exact: Vec<f64>,
    /// Weights of one output.
    one: Vec<f64>,
}

impl Weights for Taps {
    type Filter = Interpolation;
    type Weight = i16;

    fn prepare(
        &mut self,
        axis: Axis,
        interpolation: Interpolation,
        window: Range<usize>,
    ) -> Result<()> {
        let Axis { from, to, .. } = axis;
        let key = (axis, interpolation, window.clone());
        if self.key.as_ref() == Some(&key) {
            return Ok(());
        }
        self.key = None; // until the arrays agree with the new key
        let ruler = Ruler::new(from, to, interpolation);
        self.reserve(&ruler, window.len())?;
        let mut largest = 0.0_f64;
        for output in 0..to {
            // The precision depends on all weights, also on those outside of the window.
            let span = ruler.weigh(output, &mut self.one, &mut largest);
            if window.contains(&output) {
                self.one.resize(self.stride * 2, 0.0);
                self.exact.extend_from_slice(&self.one);
                self.spans.push(span);
            }
        }
        self.bits = precision(largest);
        let one = f64::from(1 << self.bits);
        let (exact, _) = self.exact.as_chunks();
        let fixed = exact
            .iter()
            .map(|pair: &[f64; 2]| pair.map(|weight| round(weight * one)));
        self.pairs.extend(fixed);
        self.key = Some(key);
        Ok(())
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn weights(&self, output: usize) -> &[i16] {
        &self.pairs[output * self.stride..][..self.stride].as_flattened()[..self.spans[output].len]
    }

    #[cfg(target_arch = "x86_64")]
    fn pairs(&self, output: usize) -> &[[i16; 2]] {
        &self.pairs[output * self.stride..][..self.spans[output].len.div_ceil(2)]
    }
}

impl Taps {
    /// Empties the arrays and makes room in them for `count` outputs.
    fn reserve(&mut self, ruler: &Ruler, count: usize) -> Result<()> {
        self.stride = ruler.most.min(ruler.from).div_ceil(2);
        self.spans.clear();
        self.pairs.clear();
        self.exact.clear();
        let pairs = count.saturating_mul(self.stride);
        reserve_growing(&mut self.spans, count)?;
        reserve_growing(&mut self.pairs, pairs)?;
        reserve_growing(&mut self.exact, pairs.saturating_mul(2))
    }
}

/// The positions of outputs on the source, and the reach of each.
struct Ruler {
    interpolation: Interpolation,
    from: usize,
    /// Pixels of the source per pixel of the result.
    scale: f64,
    /// Half of the pixels that an output reaches over.
    support: f64,
    /// Most weights of an output.
    most: usize,
}

impl Ruler {
    #[allow(clippy::cast_sign_loss)] // supports are positive
    fn new(from: usize, to: usize, interpolation: Interpolation) -> Self {
        let scale = from as f64 / to as f64;
        let size = interpolation.size();
        let stretch = if interpolation.antialiases() {
            scale.max(1.0)
        } else {
            1.0
        };
        let support = size as f64 * 0.5 * stretch;
        let most = if interpolation.antialiases() {
            support.ceil() as usize * 2 + 1
        } else {
            size
        };
        Self {
            interpolation,
            from,
            scale,
            support,
            most,
        }
    }

    /// Computes the weights of an output; `largest` becomes the largest seen so far.
    fn weigh(&self, output: usize, weights: &mut Vec<f64>, largest: &mut f64) -> Span {
        weights.clear();
        if self.interpolation.antialiases() {
            self.weigh_stretched(output, weights, largest)
        } else {
            self.weigh_few(output, weights, largest)
        }
    }

    /// `_compute_indices_min_size_weights_aa`.
    #[allow(clippy::cast_sign_loss)] // centres are positive, starts clamped
    fn weigh_stretched(&self, output: usize, weights: &mut Vec<f64>, largest: &mut f64) -> Span {
        let center = self.scale * (output as f64 + 0.5);
        let start = (center - self.support + 0.5).max(0.0) as usize;
        let end = ((center + self.support + 0.5) as usize).min(self.from);
        let len = (end - start).min(self.most);
        let shrink = 1.0 / self.scale.max(1.0);
        weights.extend((start..start + len).map(|x| {
            let distance = (x as f64 - center + 0.5) * shrink;
            self.interpolation.weight(distance)
        }));
        let sum: f64 = weights.iter().fold(0.0, |sum, weight| sum + weight);
        if sum != 0.0 {
            for weight in weights {
                *weight /= sum;
                *largest = largest.max(*weight);
            }
        }
        Span { start, len }
    }

    /// `_compute_indices_min_size_weights`: what lies outside of the image is weighed with the pixel at its
    /// edge.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)] // starts are clamped
    fn weigh_few(&self, output: usize, weights: &mut Vec<f64>, largest: &mut f64) -> Span {
        let from = self.from as i64;
        let half = self.most as i64 / 2;
        let mut at = self.scale * (output as f64 + 0.5) - 0.5;
        if self.interpolation == Interpolation::AliasedBilinear {
            at = at.max(0.0);
        }
        let index = (f64::from((at as f32).floor()) as i64).min(from - 1);
        let fraction = (at - index as f64).clamp(0.0, 1.0);
        let first = index - half + 1;
        let start = first.max(0);
        let len = ((index + half + 1).min(from) - start).clamp(0, self.most as i64) as usize;
        weights.resize(self.most, 0.0);
        let mut into = 0;
        for tap in 0..self.most as i64 {
            if first + tap <= 0 {
                into = 0;
            } else if first + tap >= from - 1 {
                into = len - 1;
            }
            weights[into] += self
                .interpolation
                .weight((tap + 1 - half) as f64 - fraction);
            *largest = largest.max(weights[into]);
            into += 1;
        }
        weights.truncate(len);
        Span {
            start: start as usize,
            len,
        }
    }
}

/// Returns the most fraction bits with which the largest weight fits into 16 bits.
fn precision(largest: f64) -> u32 {
    let fits = |bits: &u32| (0.5 + largest * f64::from(2 << bits)) as i32 >= 1 << 15;
    (0..MOST_BITS).find(fits).unwrap_or(MOST_BITS)
}

/// Rounds half away from zero.
fn round(weight: f64) -> i16 {
    let half = if weight < 0.0 { -0.5 } else { 0.5 };
    (half + weight) as i16
}
