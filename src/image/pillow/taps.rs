//! The weights of a convolution along one dimension, in fixed point.
//!
//! Owns Pillow's rounding (`precompute_coeffs` and `normalize_coeffs_8bpc` of `Resample.c`).
//! Invariant: the arrays agree with `key`, and are computed again only when it changes.

use std::ops::Range;

use super::Filter;
use crate::image::resample::Axis;
use crate::image::weights::{LOW_BITS, Span, Weights};
use crate::memory::fallible::reserve_growing;
use crate::{Error, Result};

/// Fraction bits of a weight: 32, less 8 for the pixel and 2 for sums beyond 1 and below 0.
pub(super) const PRECISION_BITS: u32 = 32 - 8 - 2;

/// Spans and weights for a window of outputs.
#[derive(Debug, Default)]
pub(in crate::image) struct Taps {
    key: Option<(Axis, Filter, Range<usize>)>,
    /// Weights kept per output: an even number, the last ones padded with zeros.
    stride: usize,
    spans: Vec<Span>,
    weights: Vec<i32>,
    /// Neighbouring weights: the low [`LOW_BITS`] of two, then their high bits.
    pairs: Vec<[i16; 2]>,
    exact: Vec<f64>,
}

impl Weights for Taps {
    type Filter = Filter;
    type Weight = i32;

    /// Also fails where Pillow raises `MemoryError`: if the weights of the whole result, in double precision,
    /// take 2 GiB.
    #[allow(clippy::cast_sign_loss)] // supports and centres are positive, starts clamped
    fn prepare(&mut self, axis: Axis, filter: Filter, window: Range<usize>) -> Result<()> {
        let Axis { from, to, sides } = axis;
        let key = (axis, filter, window.clone());
        if self.key.as_ref() == Some(&key) {
            return Ok(());
        }
        self.key = None; // until the arrays agree with the new key
        let first = f64::from(sides.0);
        let scale = f64::from(sides.1 - sides.0) / to as f64;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let most = support.ceil() as usize * 2 + 1;
        if to.saturating_mul(most * size_of::<f64>()) > i32::MAX as usize {
            return Err(Error::transform(
                format!("scale {from} pixels to {to}"),
                "its weights do not fit into the memory that Pillow allows",
            ));
        }
        let most = most.min(from);
        self.stride = most.next_multiple_of(2);
        let count = window.len() * self.stride;
        self.spans.clear();
        self.weights.clear();
        self.pairs.clear();
        reserve_growing(&mut self.spans, window.len())?;
        reserve_growing(&mut self.weights, count)?;
        reserve_growing(&mut self.pairs, count)?;
        self.weights.resize(count, 0);
        for (output, fixed) in window.zip(self.weights.chunks_exact_mut(self.stride)) {
            let center = first + (output as f64 + 0.5) * scale;
            let start = (center - support + 0.5).max(0.0) as usize;
            let end = ((center + support + 0.5) as usize).min(from);
            self.exact.clear();
            self.exact.extend(
                (start..end).map(|x| filter.weight((x as f64 - center + 0.5) * (1.0 / stretch))),
            );
            let sum: f64 = self.exact.iter().fold(0.0, |sum, weight| sum + weight);
            for (weight, fixed) in self.exact.iter().zip(fixed) {
                *fixed = to_fixed(if sum == 0.0 { *weight } else { weight / sum });
            }
            self.spans.push(Span {
                start,
                len: end - start,
            });
        }
        let (pairs, _) = self.weights.as_chunks();
        self.pairs.extend(pairs.iter().flat_map(|pair: &[i32; 2]| {
            let low = pair.map(|weight| (weight & ((1 << LOW_BITS) - 1)) as i16);
            [low, pair.map(|weight| (weight >> LOW_BITS) as i16)]
        }));
        self.key = Some(key);
        Ok(())
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn bits(&self) -> u32 {
        PRECISION_BITS
    }

    fn weights(&self, output: usize) -> &[i32] {
        &self.weights[output * self.stride..][..self.spans[output].len]
    }

    #[cfg(target_arch = "x86_64")]
    fn pairs(&self, output: usize) -> &[[i16; 2]] {
        &self.pairs[output * self.stride..][..self.spans[output].len.next_multiple_of(2)]
    }
}

/// Rounds half away from zero.
fn to_fixed(weight: f64) -> i32 {
    let half = if weight < 0.0 { -0.5 } else { 0.5 };
    (half + weight * f64::from(1 << PRECISION_BITS)) as i32
}
