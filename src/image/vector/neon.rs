//! Both passes of a resize with NEON, which multiplies weights of 16 and of 32 bits directly.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    int16x4_t, int32x4_t, uint8x16_t, vcombine_s16, vcombine_u8, vdupq_n_s32, vget_high_s16,
    vget_low_s16, vget_low_u8, vgetq_lane_u32, vld1q_u8, vmlal_n_s16, vmlaq_n_s32, vmovl_high_u8,
    vmovl_s16, vmovl_u8, vqmovn_s32, vqmovun_s16, vreinterpretq_s16_u16, vreinterpretq_u32_u8,
    vshlq_s32, vst1q_u8,
};

use crate::image::weights::Weights;

/// Rows of RGB that a pass across scales together, to share the weights.
pub(in crate::image) const ROWS: usize = 4;

/// Bytes of one vector.
pub(in crate::image) const LANES: usize = 16;

/// Proof that this CPU has NEON; all of this architecture do.
#[derive(Clone, Copy, Debug)]
pub(in crate::image) struct Vector(());

impl Vector {
    /// Returns the proof.
    #[allow(clippy::unnecessary_wraps)] // elsewhere it depends on the CPU
    pub(in crate::image) fn detect() -> Option<Self> {
        Some(Self(()))
    }
}

#[target_feature(enable = "neon")]
pub(super) fn rgb_across<W: Weights>(
    (source, stride): (&[u8], usize),
    left: usize,
    weights: &W,
    targets: [&mut [u8]; ROWS],
) {
    let [first, second, third, fourth] = targets;
    let bits = weights.bits();
    for (output, span) in weights.spans().iter().enumerate() {
        let mut sums = [vdupq_n_s32(1 << (bits - 1)); ROWS];
        let start = (span.start - left) * 3;
        for (tap, &weight) in weights.weights(output).iter().enumerate() {
            for (row, sum) in sums.iter_mut().enumerate() {
                let [pixel, ..] = widen(load(&source[row * stride + start + tap * 3..]));
                *sum = plus::<W>(*sum, pixel, weight);
            }
        }
        let pixels = vreinterpretq_u32_u8(pack(whole(sums, bits)));
        put(first, output, vgetq_lane_u32::<0>(pixels));
        put(second, output, vgetq_lane_u32::<1>(pixels));
        put(third, output, vgetq_lane_u32::<2>(pixels));
        put(fourth, output, vgetq_lane_u32::<3>(pixels));
    }
}

#[target_feature(enable = "neon")]
pub(super) fn wide_down<W: Weights>(
    source: &[u8],
    stride: usize,
    weights: &W,
    output: usize,
    target: &mut [u8],
) {
    let bits = weights.bits();
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut sums = [vdupq_n_s32(1 << (bits - 1)); 4];
        for (row, &weight) in weights.weights(output).iter().enumerate() {
            let values = widen(load(&source[row * stride + at..]));
            for (sum, values) in sums.iter_mut().zip(values) {
                *sum = plus::<W>(*sum, values, weight);
            }
        }
        store(&mut target[at..], pack(whole(sums, bits)));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}

/// Adds the products of values with a weight.
#[inline]
#[target_feature(enable = "neon")]
fn plus<W: Weights>(sum: int32x4_t, values: int16x4_t, weight: W::Weight) -> int32x4_t {
    let weight: i32 = weight.into();
    if size_of::<W::Weight>() == size_of::<i16>() {
        vmlal_n_s16(sum, values, weight as i16)
    } else {
        vmlaq_n_s32(sum, vmovl_s16(values), weight)
    }
}

/// Widens bytes to 16-bit values.
#[inline]
#[target_feature(enable = "neon")]
fn widen(bytes: uint8x16_t) -> [int16x4_t; 4] {
    let left = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
    let right = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
    [
        vget_low_s16(left),
        vget_high_s16(left),
        vget_low_s16(right),
        vget_high_s16(right),
    ]
}

/// Drops the fractions.
#[inline]
#[target_feature(enable = "neon")]
fn whole(mut sums: [int32x4_t; 4], bits: u32) -> [int32x4_t; 4] {
    for sum in &mut sums {
        *sum = vshlq_s32(*sum, vdupq_n_s32(-bits.cast_signed()));
    }
    sums
}

/// Loads a vector from the front of `bytes`.
fn load(bytes: &[u8]) -> uint8x16_t {
    let bytes: &[u8; LANES] = bytes.first_chunk().expect("slack behind the pixels");
    // SAFETY: reads 16 bytes, the size of the array, at any alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Writes a vector to the front of `bytes`.
fn store(bytes: &mut [u8], value: uint8x16_t) {
    let bytes: &mut [u8; LANES] = bytes.first_chunk_mut().expect("a vector of the target");
    // SAFETY: writes 16 bytes, the size of the array, at any alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), value) }
}

/// Clips the sums of four vectors to bytes.
#[inline]
#[target_feature(enable = "neon")]
fn pack([a, b, c, d]: [int32x4_t; 4]) -> uint8x16_t {
    let left = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
    let right = vcombine_s16(vqmovn_s32(c), vqmovn_s32(d));
    vcombine_u8(vqmovun_s16(left), vqmovun_s16(right))
}

/// Writes pixel `output` of a row, of the first bytes of `pixel`. Where there is room for a fourth
/// byte, it is written too, and overwritten by the next pixel.
fn put(row: &mut [u8], output: usize, pixel: u32) {
    let bytes = pixel.to_le_bytes();
    let rest = &mut row[output * 3..];
    if let Some(four) = rest.first_chunk_mut() {
        *four = bytes;
    } else {
        rest.copy_from_slice(&bytes[..3]);
    }
}
