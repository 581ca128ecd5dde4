//! Numbers clipped to bytes, in vectors.
#![allow(unsafe_code)]
#![allow(clippy::manual_clamp)] // `clamp` keeps NaN
#![allow(clippy::cast_sign_loss)] // clipped before

/// Truncates and clips to bytes, as `as u8` does, but in vectors.
#[inline(always)]
pub(super) fn to_byte(value: f32) -> u8 {
    let clipped = value.max(0.0).min(255.0);
    // SAFETY: the value is a number from 0 to 255.
    let whole: i32 = unsafe { clipped.to_int_unchecked() };
    whole as u8
}

/// Truncates and clips to bytes, from double precision; as [`to_byte`].
#[inline(always)]
pub(super) fn double_to_byte(value: f64) -> u8 {
    let clipped = value.max(0.0).min(255.0);
    // SAFETY: the value is a number from 0 to 255.
    let whole: i32 = unsafe { clipped.to_int_unchecked() };
    whole as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_those_of_a_cast(bits: u32, near in -300.0_f32..600.0) {
            for value in [f32::from_bits(bits), near] {
                prop_assert_eq!(to_byte(value), value as u8);
                prop_assert_eq!(double_to_byte(value.into()), value as u8);
            }
        }
    }
}
