//! Both passes with AVX2: the multiply-and-add of 16-bit pairs is exactly torch's arithmetic.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_madd_epi16, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_sra_epi32,
};

use super::taps::Taps;
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
            *made = column(source, start, taps.pairs(output), taps.bits());
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
    weights: &[[i16; 2]],
    bits: u32,
) -> __m256i {
    let mut sums = [_mm256_set1_epi32(1 << (bits - 1)); ROWS / 2];
    let (groups, rest) = weights.as_chunks();
    let mut at = start * 3;
    for &[front, back] in groups {
        let (front, back) = (splat(joined(front)), splat(joined(back)));
        for (row, &pixels) in load_rows(source, at, stride).iter().enumerate() {
            sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(front_pairs(pixels), front));
            sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(back_pairs(pixels), back));
        }
        at += 12;
    }
    if let &[pair] = rest {
        let pair = splat(joined(pair));
        for (row, &pixels) in load_rows(source, at, stride).iter().enumerate() {
            sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(front_pairs(pixels), pair));
        }
    }
    pack(whole(sums, bits))
}

#[target_feature(enable = "avx2")]
fn wide_down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
    let bits = taps.bits();
    let len = taps.spans()[output].len;
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut sums = [_mm256_set1_epi32(1 << (bits - 1)); 4];
        for (pair, &weights) in taps.pairs(output).iter().enumerate() {
            // The last row of an odd number is read twice; its second weight is zero.
            let above = load_32(&source[pair * 2 * stride + at..]);
            let below = load_32(&source[(pair * 2 + 1).min(len - 1) * stride + at..]);
            let weights = splat(joined(weights));
            for (sum, pairs) in sums.iter_mut().zip(widen(above, below)) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, weights));
            }
        }
        store_32(&mut target[at..], pack(whole(sums, bits)));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}

/// Returns a pair of weights as one value, the second in the upper half.
fn joined([first, second]: [i16; 2]) -> i32 {
    (i32::from(second) << 16) | (i32::from(first) & 0xffff)
}

/// Drops the fractions.
#[inline]
#[target_feature(enable = "avx2")]
fn whole([a, b, c, d]: [__m256i; 4], bits: u32) -> [__m256i; 4] {
    let bits = _mm_cvtsi32_si128(bits.cast_signed());
    [
        _mm256_sra_epi32(a, bits),
        _mm256_sra_epi32(b, bits),
        _mm256_sra_epi32(c, bits),
        _mm256_sra_epi32(d, bits),
    ]
}
