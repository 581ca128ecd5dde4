//! Both passes of a resize with AVX2.
//!
//! A weight of 22 bits is split into parts of 16 bits, `weight = high * 2^15 + low`, because the
//! multiply-and-add of 16-bit pairs does four times the work of a 32-bit multiplication. Sums wrap,
//! and so does the reference's addition: the recombined sum is the same 32 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
    _mm256_slli_epi32, _mm256_srai_epi32,
};

use super::taps::{GROUP, LOW_BITS, PRECISION_BITS, Taps};
use crate::image::vector::{
    LANES, PIXELS, ROWS, Vector, back_pairs, front_pairs, load_32, load_rows, pack, put, splat,
    store_32, widen,
};
use crate::image::weights::Weights;

/// Scales [`ROWS`] rows of RGB; as [`Weights::across_rows`].
pub(super) fn across(
    _: Vector,
    source: (&[u8], usize),
    left: usize,
    taps: &Taps,
    targets: [&mut [u8]; ROWS],
) {
    // SAFETY: a `Vector` exists only where `detect` found the instructions.
    unsafe { rgb_across(source, left, taps, targets) }
}

/// Computes one row, of at least [`LANES`] bytes, as a weighted sum of rows; otherwise as
/// [`scalar::down`](super::scalar::down).
pub(super) fn down(
    _: Vector,
    source: &[u8],
    stride: usize,
    taps: &Taps,
    output: usize,
    target: &mut [u8],
) {
    // SAFETY: a `Vector` exists only where `detect` found the instructions.
    unsafe { wide_down(source, stride, taps, output, target) }
}

#[target_feature(enable = "avx2")]
fn rgb_across(source: (&[u8], usize), left: usize, taps: &Taps, mut targets: [&mut [u8]; ROWS]) {
    let count = taps.spans().len();
    for output in (0..count).step_by(PIXELS) {
        let mut columns = [_mm256_setzero_si256(); PIXELS];
        for (next, made) in columns.iter_mut().enumerate() {
            // at the end of the row, the last pixel is computed again and dropped
            let output = (output + next).min(count - 1);
            let start = taps.spans()[output].start - left;
            *made = column(source, start, taps.pairs(output));
        }
        put(columns, output, &mut targets);
    }
}

/// Computes one pixel of every row, from the pixels from `start` on.
#[inline]
#[target_feature(enable = "avx2")]
fn column(
    (source, stride): (&[u8], usize),
    start: usize,
    (low, high): (&[i32], &[i32]),
) -> __m256i {
    let mut low_sums = [_mm256_set1_epi32(1 << (PRECISION_BITS - 1)); ROWS / 2];
    let mut high_sums = [_mm256_setzero_si256(); ROWS / 2];
    let groups = low.as_chunks().0.iter().zip(high.as_chunks().0);
    for (group, (low, high)) in groups.enumerate() {
        let at = (start + group * GROUP) * 3;
        let [low, low_on]: [i32; 2] = *low;
        let [high, high_on]: [i32; 2] = *high;
        let (low, low_on) = (splat(low), splat(low_on));
        let (high, high_on) = (splat(high), splat(high_on));
        for (row, &pixels) in load_rows(source, at, stride).iter().enumerate() {
            let (front, back) = (front_pairs(pixels), back_pairs(pixels));
            low_sums[row] = _mm256_add_epi32(low_sums[row], _mm256_madd_epi16(front, low));
            high_sums[row] = _mm256_add_epi32(high_sums[row], _mm256_madd_epi16(front, high));
            low_sums[row] = _mm256_add_epi32(low_sums[row], _mm256_madd_epi16(back, low_on));
            high_sums[row] = _mm256_add_epi32(high_sums[row], _mm256_madd_epi16(back, high_on));
        }
    }
    pack(whole(low_sums, high_sums))
}

/// Adds up the parts of sums and drops the fractions.
#[inline]
#[target_feature(enable = "avx2")]
fn whole(mut low: [__m256i; 4], high: [__m256i; 4]) -> [__m256i; 4] {
    for (low, high) in low.iter_mut().zip(high) {
        let high = _mm256_slli_epi32::<{ LOW_BITS.cast_signed() }>(high);
        *low = _mm256_srai_epi32::<{ PRECISION_BITS.cast_signed() }>(_mm256_add_epi32(*low, high));
    }
    low
}

#[target_feature(enable = "avx2")]
fn wide_down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
    let (low, high) = taps.pairs(output);
    let len = taps.spans()[output].len;
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut low_sums = [_mm256_set1_epi32(1 << (PRECISION_BITS - 1)); 4];
        let mut high_sums = [_mm256_setzero_si256(); 4];
        for (pair, (&low, &high)) in low.iter().zip(high).take(len.div_ceil(2)).enumerate() {
            // The last row of an odd number is read twice; its second weight is zero.
            let above = load_32(&source[pair * 2 * stride + at..]);
            let below = load_32(&source[(pair * 2 + 1).min(len - 1) * stride + at..]);
            let (low, high) = (splat(low), splat(high));
            for (part, pairs) in widen(above, below).into_iter().enumerate() {
                low_sums[part] = _mm256_add_epi32(low_sums[part], _mm256_madd_epi16(pairs, low));
                high_sums[part] = _mm256_add_epi32(high_sums[part], _mm256_madd_epi16(pairs, high));
            }
        }
        store_32(&mut target[at..], pack(whole(low_sums, high_sums)));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}
