//! Curves: a new value for each byte value, wherever in the image it is.

use crate::image::{Frame, Pixels};
use crate::{Error, Result};

/// The new value of each of the 256 values.
#[derive(Clone, Copy)]
pub(super) struct Curve(pub(super) [u8; 256]);

impl Curve {
    /// Calls `becomes` for every value.
    pub(super) fn new(becomes: impl Fn(u8) -> u8) -> Self {
        Self(std::array::from_fn(|value| becomes(value as u8)))
    }

    /// Applies the same curve to all channels.
    pub(super) fn apply(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        target.reset(source.shape())?;
        for (row, into) in source.rows().zip(target.rows_mut()) {
            for (&value, into) in row.iter().zip(into) {
                *into = self.0[usize::from(value)];
            }
        }
        Ok(())
    }
}

/// Applies a curve to each channel; a grey image uses the first.
pub(super) fn apply_each(
    curves: &[Curve; 3],
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    if source.channels() == 1 {
        return curves[0].apply(source, target);
    }
    target.reset(source.shape())?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        let pixels = row.as_chunks::<3>().0.iter();
        for (pixel, into) in pixels.zip(into.as_chunks_mut::<3>().0) {
            *into = std::array::from_fn(|channel| curves[channel].0[usize::from(pixel[channel])]);
        }
    }
    Ok(())
}

/// Inverts the image.
pub(in crate::image) fn invert(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    Curve::new(|value| 255 - value).apply(source, target)
}

/// Keeps the highest `bits` of each value.
///
/// # Errors
///
/// [`Error::Transform`]: `bits` is not within 1 to 8.
pub(in crate::image) fn posterize(bits: u8, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    if !(1..=8).contains(&bits) {
        return Err(Error::Transform {
            what: format!("posterize to {bits} bits"),
            reason: "give 1 to 8".into(),
        });
    }
    let mask = 0xff << (8 - bits);
    Curve::new(|value| value & mask).apply(source, target)
}

/// Inverts values of at least `threshold`.
pub(in crate::image) fn solarize(
    threshold: f64,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
    let becomes = |value: u8| {
        if f64::from(value) < threshold {
            value
        } else {
            255 - value
        }
    };
    Curve::new(becomes).apply(source, target)
}
