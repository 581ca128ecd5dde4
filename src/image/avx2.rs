//! Both passes of a resize with AVX2.
//!
//! A weight of 22 bits is split into parts of 16 bits, `weight = high * 2^15 + low`, because the
//! multiply-and-add of 16-bit pairs does four times the work of a 32-bit multiplication. Sums wrap,
//! and so does the reference's addition: the recombined sum is the same 32 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_extract_epi32, _mm_loadl_epi64,
    _mm_loadu_si128, _mm_packs_epi32, _mm_packus_epi16, _mm_set1_epi32, _mm_srai_epi32,
    _mm256_add_epi32, _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi8,
    _mm256_setr_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32,
    _mm256_srai_epi32, _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
};

use super::scalar;
use super::taps::{GROUP, LOW_BITS, PRECISION_BITS, Taps};

/// Rows that are scaled together, to share the weights.
pub(super) const ROWS: usize = 4;

/// Bytes of one vector.
const LANES: usize = 32;

/// Proof that this processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[allow(clippy::unused_self)] // holding one is the proof
impl Avx2 {
    /// Looks whether the processor has AVX2; the answer is remembered by the standard library.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Scales [`ROWS`] rows of RGB; else as [`scalar::across`]. Each source reaches beyond its row's last
    /// pixel by [`SLACK_BYTES`](super::frame::SLACK_BYTES) at least.
    pub(super) fn across(
        self,
        sources: [&[u8]; ROWS],
        left: usize,
        taps: &Taps,
        targets: [&mut [u8]; ROWS],
    ) {
        // SAFETY: an `Avx2` exists only where `detect` found the instructions.
        unsafe { across(sources, left, taps, targets) }
    }

    /// Makes one row of weighted rows; as [`scalar::down`].
    pub(super) fn down(
        self,
        source: &[u8],
        stride: usize,
        taps: &Taps,
        output: usize,
        target: &mut [u8],
    ) {
        if target.len() < LANES {
            return scalar::down(source, stride, taps, output, target);
        }
        // SAFETY: an `Avx2` exists only where `detect` found the instructions.
        unsafe { down(source, stride, taps, output, target) }
    }
}

#[target_feature(enable = "avx2")]
fn across(sources: [&[u8]; ROWS], left: usize, taps: &Taps, targets: [&mut [u8]; ROWS]) {
    // Two neighbouring pixels per half register, each channel's pair as 16-bit values.
    let pair_channels = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    let spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    let [first, second, third, fourth] = targets;
    for (output, span) in taps.spans().iter().enumerate() {
        let (low, high) = taps.pairs(output);
        let mut low_sums = [_mm256_setzero_si256(); ROWS];
        let mut high_sums = [_mm256_setzero_si256(); ROWS];
        let mut at = (span.start - left) * 3;
        for (low, high) in low
            .chunks_exact(GROUP / 2)
            .zip(high.chunks_exact(GROUP / 2))
        {
            let low = _mm256_permutevar8x32_epi32(load_pairs(low), spread);
            let high = _mm256_permutevar8x32_epi32(load_pairs(high), spread);
            for row in 0..ROWS {
                let pixels = _mm256_broadcastsi128_si256(load_16(&sources[row][at..]));
                let pairs = _mm256_shuffle_epi8(pixels, pair_channels);
                low_sums[row] = _mm256_add_epi32(low_sums[row], _mm256_madd_epi16(pairs, low));
                high_sums[row] = _mm256_add_epi32(high_sums[row], _mm256_madd_epi16(pairs, high));
            }
            at += GROUP * 3;
        }
        let [a, b, c, d] = std::array::from_fn(|row| pixel(low_sums[row], high_sums[row]));
        let four = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
        put(first, output, _mm_cvtsi128_si32(four));
        put(second, output, _mm_extract_epi32::<1>(four));
        put(third, output, _mm_extract_epi32::<2>(four));
        put(fourth, output, _mm_extract_epi32::<3>(four));
    }
}

/// Adds up the parts of one pixel's sums and drops the fraction.
#[target_feature(enable = "avx2")]
fn pixel(low: __m256i, high: __m256i) -> __m128i {
    let parts = _mm256_add_epi32(low, _mm256_slli_epi32::<{ LOW_BITS.cast_signed() }>(high));
    let sum = _mm_add_epi32(
        _mm256_castsi256_si128(parts),
        _mm256_extracti128_si256::<1>(parts),
    );
    let half = _mm_set1_epi32(1 << (PRECISION_BITS - 1));
    _mm_srai_epi32::<{ PRECISION_BITS.cast_signed() }>(_mm_add_epi32(sum, half))
}

/// Writes pixel `output` of a row, where there is room with a fourth byte that the next pixel
/// overwrites.
fn put(row: &mut [u8], output: usize, pixel: i32) {
    let bytes = pixel.to_le_bytes();
    let rest = &mut row[output * 3..];
    if let Some(four) = rest.first_chunk_mut() {
        *four = bytes;
    } else {
        rest.copy_from_slice(&bytes[..3]);
    }
}

#[target_feature(enable = "avx2")]
fn down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
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
            let (low, high) = (_mm256_set1_epi32(low), _mm256_set1_epi32(high));
            for (part, pairs) in widen(above, below).into_iter().enumerate() {
                low_sums[part] = _mm256_add_epi32(low_sums[part], _mm256_madd_epi16(pairs, low));
                high_sums[part] = _mm256_add_epi32(high_sums[part], _mm256_madd_epi16(pairs, high));
            }
        }
        let [a, b, c, d] = std::array::from_fn(|part| {
            let high = _mm256_slli_epi32::<{ LOW_BITS.cast_signed() }>(high_sums[part]);
            let sum = _mm256_add_epi32(low_sums[part], high);
            _mm256_srai_epi32::<{ PRECISION_BITS.cast_signed() }>(sum)
        });
        let bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        store_32(&mut target[at..], bytes);
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be made twice
    }
}

/// Pairs the bytes of two rows as 16-bit values, in the order that packing undoes.
#[target_feature(enable = "avx2")]
fn widen(above: __m256i, below: __m256i) -> [__m256i; 4] {
    let zero = _mm256_setzero_si256();
    let left = _mm256_unpacklo_epi8(above, below);
    let right = _mm256_unpackhi_epi8(above, below);
    [
        _mm256_unpacklo_epi8(left, zero),
        _mm256_unpackhi_epi8(left, zero),
        _mm256_unpacklo_epi8(right, zero),
        _mm256_unpackhi_epi8(right, zero),
    ]
}

/// Loads two pairs of weights into the lowest elements.
#[target_feature(enable = "avx2")]
fn load_pairs(pairs: &[i32]) -> __m256i {
    let pairs: &[i32; 2] = pairs.first_chunk().expect("two pairs in a group");
    // SAFETY: reads 8 bytes, the size of the array.
    _mm256_castsi128_si256(unsafe { _mm_loadl_epi64(pairs.as_ptr().cast()) })
}

#[target_feature(enable = "avx2")]
fn load_16(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = bytes.first_chunk().expect("slack behind the pixels");
    // SAFETY: reads 16 bytes, the size of the array, at any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn load_32(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; LANES] = bytes.first_chunk().expect("a vector of every row");
    // SAFETY: reads 32 bytes, the size of the array, at any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn store_32(bytes: &mut [u8], value: __m256i) {
    let bytes: &mut [u8; LANES] = bytes.first_chunk_mut().expect("a vector of the target");
    // SAFETY: writes 32 bytes, the size of the array, at any alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
}
