//! Images blended with a degenerate version of themselves: `PIL.ImageEnhance`.

use super::curve::Curve;
use super::luma::{pillow_grey_sum, pillow_greys};
use super::to_byte::{double_to_byte, to_byte};
use super::{Frame, Pixels};
use crate::wide::wide;
use crate::{Error, Result};

/// The weight of the image; the rest is its degenerate version. In single precision, as Pillow.
#[derive(Clone, Copy)]
pub(super) struct Blend(f32);

impl Blend {
    /// Takes a factor: 0 is the degenerate version, 1 the image; results of any other are clipped to bytes.
    pub(super) fn new(factor: f64) -> Result<Self> {
        let alpha = factor as f32;
        if alpha.is_finite() {
            return Ok(Self(alpha));
        }
        Err(Error::transform(
            format!("enhance an image by {factor}"),
            "give a finite number of single precision",
        ))
    }

    /// Blends one byte.
    ///
    /// This is the formula of Pillow's Blend.c for factors outside of 0 to 1, where it clips. Between them
    /// nothing is clipped, and at both ends the sum is exact, so its other cases give the same.
    #[inline(always)]
    pub(super) fn mix(self, poorer: u8, value: u8) -> u8 {
        let difference = i16::from(value) - i16::from(poorer);
        to_byte(f32::from(poorer) + self.0 * f32::from(difference))
    }

    /// Blends a row in place of its degenerate version.
    pub(super) fn onto(self, poorer: &mut [u8], row: &[u8]) {
        wide(
            #[inline(always)]
            || {
                for (into, &value) in poorer.iter_mut().zip(row) {
                    *into = self.mix(*into, value);
                }
            },
        );
    }
}

/// Blends with black.
pub(super) fn brightness(factor: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    let blend = Blend::new(factor)?;
    Curve::new(|value| blend.mix(0, value)).apply(source, target)
}

/// Blends with the mean of the image's grey values, halves up.
pub(super) fn contrast(factor: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    let blend = Blend::new(factor)?;
    let pixels = source.height() * source.width();
    let mean = if pixels == 0 {
        0
    } else {
        double_to_byte(pillow_grey_sum(source) as f64 / pixels as f64 + 0.5)
    };
    Curve::new(|value| blend.mix(mean, value)).apply(source, target)
}

/// Blends with the grey image.
pub(super) fn saturation(factor: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    let blend = Blend::new(factor)?;
    if source.channels() == 1 {
        return target.copy(source);
    }
    target.fill_rows(source, |row, into| {
        pillow_greys(row, into);
        blend.onto(into, row);
    })
}

/// Blends with the image after `PIL.ImageFilter.SMOOTH`, which leaves the outermost pixels unchanged.
pub(super) fn sharpness(factor: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    let blend = Blend::new(factor)?;
    target.reset(source.shape())?;
    let height = source.height();
    for (at, into) in target.rows_mut().enumerate() {
        let row = source.row(at);
        into.copy_from_slice(row);
        if at == 0 || at + 1 == height || source.width() < 3 {
            continue;
        }
        let around = [source.row(at - 1), row, source.row(at + 1)];
        wide(
            #[inline(always)]
            || match source.channels() {
                1 => smooth::<1>(around, into),
                _ => smooth::<3>(around, into),
            },
        );
        blend.onto(into, row);
    }
    Ok(())
}

/// Replaces the inner pixels of a row by weighted means: the middle one of 9 weighs 5, the others 1.
///
/// Uses integers: no multiple of 1/13 lies half-way between two integers, and Pillow's floating-point error
/// is far below the 1/26 by which the nearest ones miss it.
#[inline(always)]
fn smooth<const C: usize>(around: [&[u8]; 3], into: &mut [u8]) {
    let inner = into.len() - 2 * C;
    let into = &mut into[C..][..inner];
    let [above, row, below] = around.map(
        #[inline(always)]
        |row| [&row[..inner], &row[C..][..inner], &row[2 * C..][..inner]],
    );
    for (column, into) in into.iter_mut().enumerate() {
        let three = |[left, middle, right]: [&[u8]; 3]| {
            u16::from(left[column]) + u16::from(middle[column]) + u16::from(right[column])
        };
        let sum = three(above) + three(row) + three(below) + 4 * u16::from(row[1][column]);
        *into = ((sum + 6) / 13) as u8;
    }
}
