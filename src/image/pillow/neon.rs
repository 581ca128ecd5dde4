//! Both passes with NEON, which multiplies 32-bit weights directly.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    int32x4_t, uint8x16_t, vdupq_n_s32, vget_low_u8, vget_low_u16, vgetq_lane_u32, vmlaq_n_s32,
    vmovl_high_u8, vmovl_high_u16, vmovl_u8, vmovl_u16, vreinterpretq_s32_u32,
    vreinterpretq_u32_u8, vshrq_n_s32,
};

use super::taps::{PRECISION_BITS, Taps};
use crate::image::vector::{LANES, ROWS, Vector, VectorPasses, load, pack, put, store};
use crate::image::weights::Weights;

const HALF: i32 = 1 << (PRECISION_BITS - 1);

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
    for (output, span) in taps.spans().iter().enumerate() {
        let mut sums = [vdupq_n_s32(HALF); ROWS];
        let start = (span.start - left) * 3;
        for (tap, &weight) in taps.weights(output).iter().enumerate() {
            for (row, sum) in sums.iter_mut().enumerate() {
                let [pixel, ..] = widen(load(&source[row * stride + start + tap * 3..]));
                *sum = vmlaq_n_s32(*sum, pixel, weight);
            }
        }
        let pixels = vreinterpretq_u32_u8(pack(whole(sums)));
        put(first, output, vgetq_lane_u32::<0>(pixels));
        put(second, output, vgetq_lane_u32::<1>(pixels));
        put(third, output, vgetq_lane_u32::<2>(pixels));
        put(fourth, output, vgetq_lane_u32::<3>(pixels));
    }
}

#[target_feature(enable = "neon")]
fn wide_down(source: &[u8], stride: usize, taps: &Taps, output: usize, target: &mut [u8]) {
    let last = target.len() - LANES;
    let mut at = 0;
    loop {
        let mut sums = [vdupq_n_s32(HALF); 4];
        for (row, &weight) in taps.weights(output).iter().enumerate() {
            let values = widen(load(&source[row * stride + at..]));
            for (sum, values) in sums.iter_mut().zip(values) {
                *sum = vmlaq_n_s32(*sum, values, weight);
            }
        }
        store(&mut target[at..], pack(whole(sums)));
        if at == last {
            break;
        }
        at = (at + LANES).min(last); // the end may be computed twice
    }
}

/// Widens bytes to 32-bit values.
#[target_feature(enable = "neon")]
fn widen(bytes: uint8x16_t) -> [int32x4_t; 4] {
    let (left, right) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
    [
        vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(left))),
        vreinterpretq_s32_u32(vmovl_high_u16(left)),
        vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(right))),
        vreinterpretq_s32_u32(vmovl_high_u16(right)),
    ]
}

/// Drops the fractions.
#[target_feature(enable = "neon")]
fn whole(mut sums: [int32x4_t; 4]) -> [int32x4_t; 4] {
    for sum in &mut sums {
        *sum = vshrq_n_s32::<{ PRECISION_BITS.cast_signed() }>(*sum);
    }
    sums
}
