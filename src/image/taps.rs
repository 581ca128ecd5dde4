//! The weights of a convolution along one dimension, in fixed point.
//!
//! Owns Pillow's rounding (`precompute_coeffs` and `normalize_coeffs_8bpc` of `Resample.c`).
//! Invariant: the arrays agree with `key`, and are computed again only when it changes.

use std::ops::Range;

use super::Filter;
use crate::{Error, Result};

/// Fraction bits of a weight: 32, less 8 for the pixel and 2 for sums beyond 1 and below 0.
pub(super) const PRECISION_BITS: u32 = 32 - 8 - 2;

/// Bits of the low part when a weight is split for 16-bit multiplication.
pub(super) const LOW_BITS: u32 = 15;

/// Weights are stored in groups of this many, the last one filled up with zeros.
pub(super) const GROUP: usize = 4;

/// The pixels that one output is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The first.
    pub(super) start: usize,
    /// How many; at least one.
    pub(super) len: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    from: usize,
    to: usize,
    filter: Filter,
    window: Range<usize>,
}

/// Spans and weights for a window of outputs.
#[derive(Debug, Default)]
pub(super) struct Taps {
    key: Option<Key>,
    /// Weights kept per output, a multiple of [`GROUP`].
    stride: usize,
    spans: Vec<Span>,
    weights: Vec<i32>,
    /// Neighbouring weights in pairs, the second in the upper half: their low [`LOW_BITS`] bits.
    low: Vec<i32>,
    /// The same of what is above.
    high: Vec<i32>,
    exact: Vec<f64>,
}

impl Taps {
    /// Computes the weights for scaling `from` pixels to `to`, of the outputs in `window`.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`] where Pillow raises `MemoryError`: the weights of the whole result, in
    /// double precision, would take 2 GiB.
    #[allow(clippy::cast_sign_loss)] // supports and centres are positive, starts clamped
    pub(super) fn prepare(
        &mut self,
        from: usize,
        to: usize,
        filter: Filter,
        window: Range<usize>,
    ) -> Result<()> {
        let key = Key {
            from,
            to,
            filter,
            window,
        };
        if self.key.as_ref() == Some(&key) {
            return Ok(());
        }
        self.key = None; // until the arrays agree with another
        let scale = from as f64 / to as f64;
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
        self.spans.clear();
        self.weights.clear();
        self.weights.resize(key.window.len() * self.stride, 0);
        for (output, fixed) in key
            .window
            .clone()
            .zip(self.weights.chunks_exact_mut(self.stride))
        {
            let center = (output as f64 + 0.5) * scale;
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

    /// Returns the spans, one per output.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the weights of an output, as many as its span is long.
    pub(super) fn weights(&self, output: usize) -> &[i32] {
        &self.weights[output * self.stride..][..self.spans[output].len]
    }

    /// Returns the weights of an output as pairs of 16-bit parts, low and high, in whole groups.
    pub(super) fn pairs(&self, output: usize) -> (&[i32], &[i32]) {
        let first = output * self.stride / 2;
        let len = self.spans[output].len.next_multiple_of(GROUP) / 2;
        (
            &self.low[first..first + len],
            &self.high[first..first + len],
        )
    }

    /// Returns the pixels of the source that any output needs.
    pub(super) fn reach(&self) -> Range<usize> {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => first.start..last.start + last.len,
            _ => 0..0,
        }
    }
}

/// Rounds half away from zero.
fn to_fixed(weight: f64) -> i32 {
    let half = if weight < 0.0 { -0.5 } else { 0.5 };
    (half + weight * f64::from(1 << PRECISION_BITS)) as i32
}

fn split(weights: &[i32], pairs: &mut Vec<i32>, part: impl Fn(i32) -> i32) {
    pairs.clear();
    pairs.extend(
        weights
            .chunks_exact(2)
            .map(|pair| (part(pair[0]) & 0xffff) | (part(pair[1]) << 16)),
    );
}
