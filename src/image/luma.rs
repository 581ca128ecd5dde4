//! The arithmetic that converts an image to grey: Pillow's, or torchvision's for byte tensors.
//!
//! Owns Pillow's `convert("L")`, in integers; and `rgb_to_grayscale` of torchvision's `functional` and
//! `v2.functional`: single precision, truncated. The weights of the latter do not quite add up to 1, so white becomes 254.

use super::{Frame, Pixels};
use crate::wide::wide;
use crate::{Error, Result};

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

/// Maximum number of pixels whose grey values can be summed in 32 bits.
const SUMMED: usize = 1 << 24;

/// Returns the grey value of a colour: ITU-R 601-2 in 16 bits of fraction, rounded, as `L24` of Pillow's
/// Convert.c.
#[inline(always)]
pub(crate) fn pillow_luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    ((sum + 0x8000) >> 16) as u8
}

/// Writes a row of colours as grey values, three equal ones for each pixel.
pub(super) fn pillow_greys(row: &[u8], into: &mut [u8]) {
    let pixels = row.as_chunks::<3>().0.iter();
    for (&pixel, into) in pixels.zip(into.as_chunks_mut::<3>().0) {
        *into = [pillow_luma(pixel); 3];
    }
}

/// Sums the grey values of all pixels.
pub(super) fn pillow_grey_sum(source: Pixels<'_>) -> u64 {
    let greys = |row: &[u8]| -> u64 {
        if source.channels() == 1 {
            let sum = |part: &[u8]| part.iter().copied().map(u32::from).sum::<u32>();
            return row.chunks(SUMMED).map(|part| u64::from(sum(part))).sum();
        }
        let sum = |part: &[[u8; 3]]| {
            part.iter()
                .map(|&pixel| u32::from(pillow_luma(pixel)))
                .sum::<u32>()
        };
        let pixels = row.as_chunks::<3>().0;
        pixels.chunks(SUMMED).map(|part| u64::from(sum(part))).sum()
    };
    wide(
        #[inline(always)]
        || source.rows().map(greys).sum(),
    )
}

/// Makes the grey image with 1 channel, or with 3 equal ones.
pub(super) fn pillow_grayscale(
    channels: usize,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    if channels != 1 && channels != 3 {
        return Err(Error::transform(
            format!("make a grey image of {channels} channels"),
            "give 1 or 3",
        ));
    }
    target.reset(source.shape().with_channels(channels))?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        match (source.channels(), channels) {
            (1, 1) => into.copy_from_slice(row),
            (1, _) => {
                for (&value, into) in row.iter().zip(into.as_chunks_mut::<3>().0) {
                    *into = [value; 3];
                }
            }
            (_, 1) => {
                for (&pixel, into) in row.as_chunks::<3>().0.iter().zip(into) {
                    *into = pillow_luma(pixel);
                }
            }
            _ => pillow_greys(row, into),
        }
    }
    Ok(())
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
pub(super) fn torch_grayscale(
    source: Pixels<'_>,
    channels: usize,
    sum: Sum,
    target: &mut Frame,
) -> Result<()> {
    target.reset(source.shape().with_channels(channels))?;
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
        let shape = Shape::new(2, 3, 1);
        let bytes = [0, 9, 255, 4, 5, 6];
        let source = Pixels::new(&bytes, shape, 3).expect("six bytes");
        let mut target = Frame::default();
        torch_grayscale(source, 3, Sum::Rounded, &mut target).expect("room");
        assert_eq!(target.shape(), shape.with_channels(3));
        assert_eq!(target.pixels()[..6], [0, 0, 0, 9, 9, 9]);

        let region = Region::new(1, 1, 1, 2);
        torch_grayscale(source.part(region), 1, Sum::Fused, &mut target).expect("room");
        assert_eq!(target.pixels(), [5, 6]);
    }

    #[test]
    fn colours_become_grey() {
        let shape = Shape::new(1, 2, 3);
        let bytes = [255, 255, 255, 0, 255, 0];
        let source = Pixels::new(&bytes, shape, 6).expect("two pixels");
        let mut target = Frame::default();
        torch_grayscale(source, 1, Sum::Rounded, &mut target).expect("room");
        assert_eq!(target.pixels(), [254, 149]);
    }
}
