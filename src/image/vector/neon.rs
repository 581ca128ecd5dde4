//! The operations that the passes with NEON share: loads, stores, and the clip of sums to bytes.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    int32x4_t, uint8x16_t, vcombine_s16, vcombine_u8, vld1q_u8, vqmovn_s32, vqmovun_s16, vst1q_u8,
};

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

/// Loads a vector from the front of `bytes`.
pub(in crate::image) fn load(bytes: &[u8]) -> uint8x16_t {
    let bytes: &[u8; LANES] = bytes.first_chunk().expect("slack behind the pixels");
    // SAFETY: reads 16 bytes, the size of the array, at any alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Writes a vector to the front of `bytes`.
pub(in crate::image) fn store(bytes: &mut [u8], value: uint8x16_t) {
    let bytes: &mut [u8; LANES] = bytes.first_chunk_mut().expect("a vector of the target");
    // SAFETY: writes 16 bytes, the size of the array, at any alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), value) }
}

/// Clips the sums of four vectors to bytes.
#[target_feature(enable = "neon")]
pub(in crate::image) fn pack([a, b, c, d]: [int32x4_t; 4]) -> uint8x16_t {
    let left = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
    let right = vcombine_s16(vqmovn_s32(c), vqmovn_s32(d));
    vcombine_u8(vqmovun_s16(left), vqmovun_s16(right))
}

/// Writes pixel `output` of a row, of the first bytes of `pixel`. Where there is room for a fourth
/// byte, it is written too, and overwritten by the next pixel.
pub(in crate::image) fn put(row: &mut [u8], output: usize, pixel: u32) {
    let bytes = pixel.to_le_bytes();
    let rest = &mut row[output * 3..];
    if let Some(four) = rest.first_chunk_mut() {
        *four = bytes;
    } else {
        rest.copy_from_slice(&bytes[..3]);
    }
}
