//! Vector instructions of this architecture, for the passes of a resize. Others have scalar code only.
//!
//! Each has the number of rows that are scaled together, [`ROWS`], and the bytes of a vector, [`LANES`].
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

use super::weights::Weights;
#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{LANES, ROWS, Vector};
#[cfg(target_arch = "x86_64")]
use avx2::{rgb_across, wide_down};
#[cfg(target_arch = "aarch64")]
pub(super) use neon::{LANES, ROWS, Vector};
#[cfg(target_arch = "aarch64")]
use neon::{rgb_across, wide_down};

/// Scales [`ROWS`] rows of RGB; otherwise as [`across_row`](Weights::across_row). `source` is the bytes and how many
/// lie between the starts of two rows; it extends at least
/// [`SLACK_BYTES`](crate::image::frame::SLACK_BYTES) beyond the last pixel.
pub(super) fn across_rows<W: Weights>(
    _: Vector,
    weights: &W,
    source: (&[u8], usize),
    left: usize,
    targets: [&mut [u8]; ROWS],
) {
    // SAFETY: a `Vector` exists only where `detect` found the instructions.
    unsafe { rgb_across(source, left, weights, targets) }
}

/// As [`down_row`](Weights::down_row), for rows of at least [`LANES`] bytes.
pub(super) fn down_row_wide<W: Weights>(
    _: Vector,
    weights: &W,
    source: &[u8],
    stride: usize,
    output: usize,
    target: &mut [u8],
) {
    // SAFETY: a `Vector` exists only where `detect` found the instructions.
    unsafe { wide_down(source, stride, weights, output, target) }
}
