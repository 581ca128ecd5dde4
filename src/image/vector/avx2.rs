//! Both passes of a resize with AVX2, whose multiply-and-add of 16-bit pairs does four times the work of a
//! 32-bit multiplication.
//!
//! torch's weights have 16 bits. Pillow's are split into two parts, `weight = high * 2^15 + low`. Sums wrap, and
//! so does the reference's addition: the recombined sum is the same 32 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32,
    _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_set1_epi32, _mm256_setr_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_sra_epi32, _mm256_storeu_si256,
    _mm256_unpackhi_epi8, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use crate::image::weights::{LOW_BITS, Weights};

/// Rows of RGB that a pass across scales together, to share the weights.
pub(in crate::image) const ROWS: usize = 8;

/// Pixels of a row that are written together.
const PIXELS: usize = 4;

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

/// Sums of products with the parts of weights; the second of a weight of 16 bits stays zero.
type Sums = [__m256i; 2];

/// Returns the number of 16-bit parts of a weight.
const fn parts<W: Weights>() -> usize {
    size_of::<W::Weight>() / size_of::<i16>()
}

#[target_feature(enable = "avx2")]
pub(super) fn rgb_across<W: Weights>(
    source: (&[u8], usize),
    left: usize,
    weights: &W,
    mut targets: [&mut [u8]; ROWS],
) {
    let count = weights.spans().len();
    for output in (0..count).step_by(PIXELS) {
        let mut columns = [_mm256_setzero_si256(); PIXELS];
        for (next, made) in columns.iter_mut().enumerate() {
            // at the end of the row, the last pixel is computed again and dropped
            let output = (output + next).min(count - 1);
            let start = weights.spans()[output].start - left;
            *made = column(source, start, weights, output);
        }
        put(columns, output, &mut targets);
    }
}

/// Computes one pixel of every row, from the pixels from `start` on.
#[inline]
#[target_feature(enable = "avx2")]
fn column<W: Weights>(
    (source, stride): (&[u8], usize),
    start: usize,
    weights: &W,
    output: usize,
) -> __m256i {
    let mut sums = halves(weights.bits());
    let mut pairs = weights.pairs(output);
    let mut at = start * 3;
    while let Some((group, rest)) = pairs.split_at_checked(2 * parts::<W>()) {
        let (front, back) = group.split_at(parts::<W>());
        for (sums, pixels) in sums.iter_mut().zip(load_rows(source, at, stride)) {
            add(sums, front_pairs(pixels), front);
            add(sums, back_pairs(pixels), back);
        }
        pairs = rest;
        at += 12;
    }
    if let Some(pair) = pairs.get(..parts::<W>()) {
        for (sums, pixels) in sums.iter_mut().zip(load_rows(source, at, stride)) {
            add(sums, front_pairs(pixels), pair);
        }
    }
    pack(whole(sums, weights.bits()))
}

#[target_feature(enable = "avx2")]
pub(super) fn wide_down<W: Weights>(
    source: &[u8],
    stride: usize,
    weights: &W,
    output: usize,
    target: &mut [u8],
) {
    let pairs = weights.pairs(output);
    let len = weights.spans()[output].len;
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut sums = halves(weights.bits());
        let rows = (0..len).step_by(2).zip(source.chunks(2 * stride));
        for ((row, rows), pair) in rows.zip(pairs.chunks_exact(parts::<W>())) {
            // The last row of an odd number is read twice; its second weight is zero.
            let next = if row + 1 < len { stride } else { 0 };
            let (above, below) = (load_32(&rows[at..]), load_32(&rows[next + at..]));
            for (sums, values) in sums.iter_mut().zip(widen(above, below)) {
                add(sums, values, pair);
            }
        }
        store_32(&mut target[at..], pack(whole(sums, weights.bits())));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}

/// Returns the initial sums: one half, with which dropping the fraction rounds to the nearest integer.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(bits: u32) -> [Sums; 4] {
    [[_mm256_set1_epi32(1 << (bits - 1)), _mm256_setzero_si256()]; 4]
}

/// Adds the products of values with a pair of weights, each of its parts to a sum of its own.
#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut Sums, values: __m256i, pair: &[[i16; 2]]) {
    for (sum, &[first, second]) in sums.iter_mut().zip(pair) {
        let weights = (i32::from(second) << 16) | (i32::from(first) & 0xffff);
        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(values, _mm256_set1_epi32(weights)));
    }
}

/// Recombines the sums of parts and drops the fractions.
#[inline]
#[target_feature(enable = "avx2")]
fn whole(sums: [Sums; 4], bits: u32) -> [__m256i; 4] {
    let bits = _mm_cvtsi32_si128(bits.cast_signed());
    let mut wholes = [_mm256_setzero_si256(); 4];
    for (whole, [low, high]) in wholes.iter_mut().zip(sums) {
        let high = _mm256_slli_epi32::<{ LOW_BITS.cast_signed() }>(high);
        *whole = _mm256_sra_epi32(_mm256_add_epi32(low, high), bits);
    }
    wholes
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_32(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; LANES] = bytes.first_chunk().expect("a vector of every row");
    // SAFETY: reads 32 bytes, the size of the array, at any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_32(bytes: &mut [u8], value: __m256i) {
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

/// Loads 16 bytes of [`ROWS`] rows, from byte `at` of each; rows begin every `stride` bytes. Each vector
/// has a row and the one [`ROWS`]` / 2` further down.
#[inline]
#[target_feature(enable = "avx2")]
fn load_rows(source: &[u8], at: usize, stride: usize) -> [__m256i; ROWS / 2] {
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
fn front_pairs(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Pairs the two pixels after those of [`front_pairs`].
#[inline]
#[target_feature(enable = "avx2")]
fn back_pairs(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, //
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Clips the sums of four vectors to bytes, in the order that [`widen`] and [`put`] expect.
#[inline]
#[target_feature(enable = "avx2")]
fn pack([a, b, c, d]: [__m256i; 4]) -> __m256i {
    _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}

/// Writes neighbouring pixels of every row, from pixel `output` on, as far as the rows go. Each vector is
/// one pixel of all rows, in the order of the rows, with a fourth byte that is dropped.
#[inline]
#[target_feature(enable = "avx2")]
fn put(columns: [__m256i; PIXELS], output: usize, targets: &mut [&mut [u8]; ROWS]) {
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
