//! The weights of a convolution along one dimension, in fixed point.
//!
//! Owns Pillow's rounding (`precompute_coeffs` and `normalize_coeffs_8bpc` of `Resample.c`).
//! Invariant: the arrays agree with `key`, and are computed again only when it changes.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx2 as passes;
#[cfg(target_arch = "aarch64")]
use super::neon as passes;
use super::{Filter, scalar};
use crate::image::resample::Axis;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::image::vector::{ROWS, Vector};
use crate::image::weights::{Span, Weights};
use crate::memory::fallible::reserve_growing;
use crate::{Error, Result};

/// Fraction bits of a weight: 32, less 8 for the pixel and 2 for sums beyond 1 and below 0.
pub(super) const PRECISION_BITS: u32 = 32 - 8 - 2;

/// Bits of the low part when a weight is split for 16-bit multiplication.
pub(super) const LOW_BITS: u32 = 15;

/// Weights are stored in groups of this many, the last one padded with zeros.
pub(super) const GROUP: usize = 4;

#[derive(Debug, PartialEq)]
struct Key {
    axis: Axis,
    filter: Filter,
    window: Range<usize>,
}

/// Spans and weights for a window of outputs.
#[derive(Debug, Default)]
pub(in crate::image) struct Taps {
    key: Option<Key>,
    /// Weights kept per output, a multiple of [`GROUP`].
    stride: usize,
    spans: Vec<Span>,
    weights: Vec<i32>,
    /// Neighbouring weights in pairs, the second in the upper half: their low [`LOW_BITS`] bits.
    low: Vec<i32>,
    /// As `low`, for the high bits.
    high: Vec<i32>,
    exact: Vec<f64>,
}

impl Weights for Taps {
    type Filter = Filter;

    /// Also fails where Pillow raises `MemoryError`: if the weights of the whole result, in double precision,
    /// take 2 GiB.
    #[allow(clippy::cast_sign_loss)] // supports and centres are positive, starts clamped
    fn prepare(&mut self, axis: Axis, filter: Filter, window: Range<usize>) -> Result<()> {
        let Axis { from, to, sides } = axis;
        let key = Key {
            axis,
            filter,
            window,
        };
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
            return Err(Error::Transform {
                what: format!("scale {from} pixels to {to}"),
                reason: "its weights do not fit into the memory that Pillow allows".into(),
            });
        }
        let most = most.min(from);
        self.stride = most.next_multiple_of(GROUP);
        let count = key.window.len() * self.stride;
        self.spans.clear();
        self.weights.clear();
        self.low.clear();
        self.high.clear();
        reserve_growing(&mut self.spans, key.window.len())?;
        reserve_growing(&mut self.weights, count)?;
        reserve_growing(&mut self.low, count / 2)?;
        reserve_growing(&mut self.high, count / 2)?;
        self.weights.resize(count, 0);
        for (output, fixed) in key
            .window
            .clone()
            .zip(self.weights.chunks_exact_mut(self.stride))
        {
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
        split(&self.weights, &mut self.low, |weight| {
            weight & ((1 << LOW_BITS) - 1)
        });
        split(&self.weights, &mut self.high, |weight| weight >> LOW_BITS);
        self.key = Some(key);
        Ok(())
    }

    fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn across_row<const C: usize>(&self, source: &[u8], left: usize, target: &mut [u8]) {
        scalar::across::<C>(source, left, self, target);
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn across_rows(
        &self,
        vector: Vector,
        source: (&[u8], usize),
        left: usize,
        targets: [&mut [u8]; ROWS],
    ) {
        passes::across(vector, source, left, self, targets);
    }

    fn down_row(&self, source: &[u8], stride: usize, output: usize, target: &mut [u8]) {
        scalar::down(source, stride, self, output, target);
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn down_row_wide(
        &self,
        vector: Vector,
        source: &[u8],
        stride: usize,
        output: usize,
        target: &mut [u8],
    ) {
        passes::down(vector, source, stride, self, output, target);
    }
}

impl Taps {
    /// Returns the weights of an output, as many as its span has pixels.
    pub(super) fn weights(&self, output: usize) -> &[i32] {
        &self.weights[output * self.stride..][..self.spans[output].len]
    }

    /// Returns the weights of an output as pairs of 16-bit parts, low and high, in whole groups.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn pairs(&self, output: usize) -> (&[i32], &[i32]) {
        let first = output * self.stride / 2;
        let len = self.spans[output].len.next_multiple_of(GROUP) / 2;
        (
            &self.low[first..first + len],
            &self.high[first..first + len],
        )
    }
}

/// Rounds half away from zero.
fn to_fixed(weight: f64) -> i32 {
    let half = if weight < 0.0 { -0.5 } else { 0.5 };
    (half + weight * f64::from(1 << PRECISION_BITS)) as i32
}

/// Appends a part of each weight, in pairs, to `pairs`.
fn split(weights: &[i32], pairs: &mut Vec<i32>, part: impl Fn(i32) -> i32) {
    pairs.extend(
        weights
            .chunks_exact(2)
            .map(|pair| (part(pair[0]) & 0xffff) | (part(pair[1]) << 16)),
    );
}
