//! The arithmetic that converts an image to grey: Pillow's, or torchvision's for byte tensors.
//!
//! Owns `rgb_to_grayscale` of torchvision's `functional` and `v2.functional`: single precision, truncated.
//! The weights do not quite add up to 1, so white becomes 254.

use super::{Frame, Pixels};
use crate::Result;

/// The weights of colours, named by the function that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luma {
    /// Pillow's `convert("L")`.
    Pillow,
    /// torchvision's, for tensors of bytes.
    Torch(Sum),
}

impl Luma {
    /// Returns the variant that Python calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Pillow,
            Self::Torch(Sum::Rounded),
            Self::Torch(Sum::Fused),
        ]
        .into_iter()
        .find(|luma| luma.name() == name)
    }

    /// Returns its name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Torch(Sum::Rounded) => "torch",
            Self::Torch(Sum::Fused) => "torch_fused",
        }
    }
}

const RED: f32 = 0.2989;
const GREEN: f32 = 0.587;
const BLUE: f32 = 0.114;

/// The rounding when a weighted colour is added to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// The product is rounded, then the sum: torchvision v1; and v2 where torch has no vector code.
    Rounded,
    /// Only the sum is rounded: v2 with AVX2, whose `add_` multiplies and adds in one instruction.
    Fused,
}

/// Converts `source` to grey in `target`, with `channels` equal bytes per pixel. Grey images are unchanged.
///
/// # Errors
///
/// [`Error::Transform`](crate::Error::Transform): no memory.
pub(super) fn torch_grayscale(
    source: Pixels<'_>,
    channels: usize,
    sum: Sum,
    target: &mut Frame,
) -> Result<()> {
    let mut shape = source.shape();
    shape.channels = channels;
    target.reset(shape)?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        let pixels = into.chunks_exact_mut(channels);
        if source.channels() == 1 {
            for (pixel, &luma) in pixels.zip(row) {
                pixel.fill(luma);
            }
            continue;
        }
        for (pixel, &colour) in pixels.zip(row.as_chunks().0) {
            pixel.fill(luma(colour, sum));
        }
    }
    Ok(())
}

#[allow(clippy::cast_sign_loss)] // sums are positive
#[allow(clippy::suboptimal_flops)] // rounded as torch rounds
fn luma(colour: [u8; 3], sum: Sum) -> u8 {
    let [red, green, blue] = colour.map(f32::from);
    let add = |value: f32, weight: f32, to: f32| match sum {
        Sum::Rounded => value * weight + to,
        // In double precision, products and sums of such numbers are exact: only the result is rounded.
        Sum::Fused => (f64::from(value) * f64::from(weight) + f64::from(to)) as f32,
    };
    add(blue, BLUE, add(green, GREEN, red * RED)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Region, Shape};

    #[test]
    #[allow(clippy::cast_sign_loss)] // sums are positive
    fn fused_sums_are_rounded_once() {
        let mut different = 0;
        for red in (0..=255).step_by(17) {
            for green in 0..=255 {
                for blue in 0..=255 {
                    let [r, g, b] = [red, green, blue].map(f32::from);
                    let expected = b.mul_add(BLUE, g.mul_add(GREEN, r * RED)) as u8;
                    assert_eq!(luma([red, green, blue], Sum::Fused), expected);
                    different += u32::from(luma([red, green, blue], Sum::Rounded) != expected);
                }
            }
        }
        assert!(different > 0, "the two sums differ somewhere");
    }

    #[test]
    fn grey_is_kept_and_repeated() {
        let shape = Shape {
            height: 2,
            width: 3,
            channels: 1,
        };
        let bytes = [0, 9, 255, 4, 5, 6];
        let source = Pixels::new(&bytes, shape, 3).expect("six bytes");
        let mut target = Frame::default();
        torch_grayscale(source, 3, Sum::Rounded, &mut target).expect("room");
        assert_eq!(
            target.shape(),
            Shape {
                channels: 3,
                ..shape
            }
        );
        assert_eq!(target.pixels()[..6], [0, 0, 0, 9, 9, 9]);

        let region = Region {
            top: 1,
            left: 1,
            height: 1,
            width: 2,
        };
        torch_grayscale(source.part(region), 1, Sum::Fused, &mut target).expect("room");
        assert_eq!(target.pixels(), [5, 6]);
    }

    #[test]
    fn colours_become_grey() {
        let shape = Shape {
            height: 1,
            width: 2,
            channels: 3,
        };
        let bytes = [255, 255, 255, 0, 255, 0];
        let source = Pixels::new(&bytes, shape, 6).expect("two pixels");
        let mut target = Frame::default();
        torch_grayscale(source, 1, Sum::Rounded, &mut target).expect("room");
        assert_eq!(target.pixels(), [254, 149]);
    }
}
