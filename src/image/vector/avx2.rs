//! The parts that the passes with AVX2 share: proof of the instructions, loads and stores of whole registers, and
//! pixels of several rows in one register.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_castsi128_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256,
    _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set1_epi32, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_storeu_si256, _mm256_unpackhi_epi8,
    _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi32,
    _mm256_unpacklo_epi64,
};

/// Rows of RGB that a pass across scales together, to share the weights.
pub(in crate::image) const ROWS: usize = 8;

/// Pixels of a row that are written together.
pub(in crate::image) const PIXELS: usize = 4;

/// Bytes of one vector.
pub(in crate::image) const LANES: usize = 32;

/// Proof that this CPU has AVX2.
#[derive(Clone, Copy, Debug)]
pub(in crate::image) struct Vector(());

impl Vector {
    /// Returns the proof if the CPU has AVX2; the standard library caches the answer.
    pub(in crate::image) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn load_32(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; LANES] = bytes.first_chunk().expect("a vector of every row");
    // SAFETY: reads 32 bytes, the size of the array, at any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn store_32(bytes: &mut [u8], value: __m256i) {
    let bytes: &mut [u8; LANES] = bytes.first_chunk_mut().expect("a vector of the target");
    // SAFETY: writes 32 bytes, the size of the array, at any alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_16(bytes: &mut [u8; 16], value: __m128i) {
    // SAFETY: writes 16 bytes, the size of the array, at any alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
}

/// Pairs the bytes of two rows as 16-bit values, in the order that packing undoes.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn widen(above: __m256i, below: __m256i) -> [__m256i; 4] {
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

/// Loads 16 bytes of [`ROWS`] rows, from byte `at` of each; rows begin every `stride` bytes. Each vector
/// has a row and the one [`ROWS`]` / 2` further down.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn load_rows(source: &[u8], at: usize, stride: usize) -> [__m256i; ROWS / 2] {
    let rows = &source[at..at + (ROWS - 1) * stride + 16];
    let mut both = [_mm256_setzero_si256(); ROWS / 2];
    for (row, both) in both.iter_mut().enumerate() {
        // SAFETY: the row is not the last, from which on `rows` has 16 bytes.
        let upper = unsafe { rows.as_ptr().add(row * stride) };
        // SAFETY: this one is the last at most.
        let lower = unsafe { rows.as_ptr().add((row + ROWS / 2) * stride) };
        // SAFETY: reads 16 bytes, at any alignment, that `rows` has.
        let upper = unsafe { _mm_loadu_si128(upper.cast()) };
        // SAFETY: as above.
        let lower = unsafe { _mm_loadu_si128(lower.cast()) };
        *both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(upper), lower);
    }
    both
}

/// Pairs the first two pixels of both rows: each channel's as 16-bit values.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn front_pairs(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Pairs the two pixels after those of [`front_pairs`].
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn back_pairs(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, //
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Repeats a pair of weights.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn splat(pair: i32) -> __m256i {
    _mm256_set1_epi32(pair)
}

/// Clips the sums of four vectors to bytes, in the order that [`widen`] and [`put`] expect.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn pack([a, b, c, d]: [__m256i; 4]) -> __m256i {
    _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}

/// Writes neighbouring pixels of every row, from pixel `output` on, as far as the rows go. Each vector is
/// one pixel of all rows, in the order of the rows, with a fourth byte that is dropped.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::image) fn put(
    columns: [__m256i; PIXELS],
    output: usize,
    targets: &mut [&mut [u8]; ROWS],
) {
    let [a, b, c, d] = columns;
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab_on, cd_on) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    let rows = [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_on, cd_on),
        _mm256_unpackhi_epi64(ab_on, cd_on),
    ];
    let dense = _mm256_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, //
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    );
    for (row, both) in rows.into_iter().enumerate() {
        let both = _mm256_shuffle_epi8(both, dense);
        put_row(_mm256_castsi256_si128(both), output, targets[row]);
        let later = _mm256_extracti128_si256::<1>(both);
        put_row(later, output, targets[row + ROWS / 2]);
    }
}

/// Writes four pixels of a row, or as many as there is room for. Where there is room for more, that is
/// written too, and overwritten by the pixels that follow.
#[inline]
#[target_feature(enable = "avx2")]
fn put_row(pixels: __m128i, output: usize, row: &mut [u8]) {
    let rest = &mut row[output * 3..];
    if let Some(room) = rest.first_chunk_mut() {
        return store_16(room, pixels);
    }
    let mut bytes = [0; 16];
    store_16(&mut bytes, pixels);
    let len = rest.len().min(PIXELS * 3);
    rest[..len].copy_from_slice(&bytes[..len]);
}
