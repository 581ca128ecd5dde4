//! Images blended with a degenerate version of themselves: `PIL.ImageEnhance`.

use super::curve::Curve;
use super::grey;
use crate::image::to_byte::{double_to_byte, to_byte};
use crate::image::{Frame, Pixels};
use crate::wide::wide;
use crate::{Error, Result};

/// The weight of the image; the rest is its degenerate version. In single precision, as Pillow.
#[derive(Clone, Copy)]
pub(super) struct Blend(f32);

impl Blend {
    /// Takes a factor: 0 is the degenerate version, 1 the image; results of any other are clipped to bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: a factor that is not finite.
    pub(super) fn new(factor: f64) -> Result<Self> {
        let alpha = factor as f32;
        if alpha.is_finite() {
            return Ok(Self(alpha));
        }
        Err(Error::Transform {
            what: format!("enhance an image by {factor}"),
            reason: "give a finite number of single precision".into(),
        })
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
pub(in crate::image) fn brightness(
    factor: f64,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    let blend = Blend::new(factor)?;
    Curve::new(|value| blend.mix(0, value)).apply(source, target)
}

/// Blends with the mean of the image's grey values, halves up.
pub(in crate::image) fn contrast(
    factor: f64,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    let blend = Blend::new(factor)?;
    let pixels = source.height() * source.width();
    let mean = if pixels == 0 {
        0
    } else {
        double_to_byte(grey::sum(source) as f64 / pixels as f64 + 0.5)
    };
    Curve::new(|value| blend.mix(mean, value)).apply(source, target)
}

/// Blends with the grey image.
pub(in crate::image) fn saturation(
    factor: f64,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    let blend = Blend::new(factor)?;
    target.reset(source.shape())?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        if source.channels() == 1 {
            into.copy_from_slice(row);
            continue;
        }
        grey::fill(row, into);
        blend.onto(into, row);
    }
    Ok(())
}
