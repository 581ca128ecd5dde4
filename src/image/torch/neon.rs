//! Both passes with NEON, whose widening multiply-and-add takes 16-bit weights directly.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    int16x8_t, int32x4_t, uint8x16_t, vdupq_n_s32, vget_high_s16, vget_low_s16, vget_low_u8,
    vgetq_lane_u32, vmlal_n_s16, vmovl_high_u8, vmovl_u8, vreinterpretq_s16_u16,
    vreinterpretq_u32_u8, vshlq_s32,
};

use super::taps::Taps;
use crate::image::vector::{LANES, ROWS, Vector, VectorPasses, load, pack, put, store};
use crate::image::weights::Weights;

impl VectorPasses for Taps {
    fn across_rows(
        &self,
        _: Vector,
        source: (&[u8], usize),
        left: usize,
        targets: [&mut [u8]; ROWS],
    ) {
        // SAFETY: a `Vector` exists only where the instructions do.
        unsafe { rgb_across(source, left, self, targets) }
    }

    fn down_row_wide(
        &self,
        _: Vector,
        source: &[u8],
        stride: usize,
        output: usize,
        target: &mut [u8],
    ) {
        // SAFETY: a `Vector` exists only where the instructions do.
        unsafe { wide_down(source, stride, self, output, target) }
    }
}

#[target_feature(enable = "neon")]
fn rgb_across(
    (source, stride): (&[u8], usize),
    left: usize,
    taps: &Taps,
    targets: [&mut [u8]; ROWS],
) {
    let [first, second, third, fourth] = targets;
    let bits = taps.bits();
    for (output, span) in taps.spans().iter().enumerate() {
        let mut sums = [vdupq_n_s32(1 << (bits - 1)); ROWS];
        let start = (span.start - left) * 3;
        for (tap, &weight) in taps.weights(output).iter().enumerate() {
            for (row, sum) in sums.iter_mut().enumerate() {
                let (pixel, _) = widen(load(&source[row * stride + start + tap * 3..]));
                *sum = vmlal_n_s16(*sum, vget_low_s16(pixel), weight);
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
fn wide_down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
    let bits = taps.bits();
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut sums = [vdupq_n_s32(1 << (bits - 1)); 4];
        for (row, &weight) in taps.weights(output).iter().enumerate() {
            let (left, right) = widen(load(&source[row * stride + at..]));
            sums[0] = vmlal_n_s16(sums[0], vget_low_s16(left), weight);
            sums[1] = vmlal_n_s16(sums[1], vget_high_s16(left), weight);
            sums[2] = vmlal_n_s16(sums[2], vget_low_s16(right), weight);
            sums[3] = vmlal_n_s16(sums[3], vget_high_s16(right), weight);
        }
        store(&mut target[at..], pack(whole(sums, bits)));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}

/// Widens bytes to 16-bit values.
#[target_feature(enable = "neon")]
fn widen(bytes: uint8x16_t) -> (int16x8_t, int16x8_t) {
    (
        vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
        vreinterpretq_s16_u16(vmovl_high_u8(bytes)),
    )
}

/// Drops the fractions.
#[target_feature(enable = "neon")]
fn whole(mut sums: [int32x4_t; 4], bits: u32) -> [int32x4_t; 4] {
    for sum in &mut sums {
        *sum = vshlq_s32(*sum, vdupq_n_s32(-bits.cast_signed()));
    }
    sums
}
