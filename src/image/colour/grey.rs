//! Grey values of colours: Pillow's `convert("L")`.

use crate::image::{Frame, Pixels, Shape};
use crate::wide::wide;
use crate::{Error, Result};

/// Maximum number of pixels whose grey values can be summed in 32 bits.
const SUMMED: usize = 1 << 24;

/// Returns the grey value of a colour: ITU-R 601-2 in 16 bits of fraction, rounded, as `L24` of Pillow's
/// Convert.c.
#[inline(always)]
pub(crate) fn of([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    ((sum + 0x8000) >> 16) as u8
}

/// Writes a row of colours as grey values, three equal ones for each pixel.
pub(super) fn fill(row: &[u8], into: &mut [u8]) {
    let pixels = row.as_chunks::<3>().0.iter();
    for (&pixel, into) in pixels.zip(into.as_chunks_mut::<3>().0) {
        *into = [of(pixel); 3];
    }
}

/// Sums the grey values of all pixels.
pub(super) fn sum(source: Pixels<'_>) -> u64 {
    let greys = |row: &[u8]| -> u64 {
        if source.channels() == 1 {
            let sum = |part: &[u8]| part.iter().copied().map(u32::from).sum::<u32>();
            return row.chunks(SUMMED).map(|part| u64::from(sum(part))).sum();
        }
        let sum = |part: &[[u8; 3]]| part.iter().map(|&pixel| u32::from(of(pixel))).sum::<u32>();
        let pixels = row.as_chunks::<3>().0;
        pixels.chunks(SUMMED).map(|part| u64::from(sum(part))).sum()
    };
    wide(
        #[inline(always)]
        || source.rows().map(greys).sum(),
    )
}

/// Makes the grey image with 1 channel, or with 3 equal ones.
///
/// # Errors
///
/// [`Error::Transform`]: another number of channels.
pub(in crate::image) fn grayscale(
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
    target.reset(Shape {
        channels,
        ..source.shape()
    })?;
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
                    *into = of(pixel);
                }
            }
            _ => fill(row, into),
        }
    }
    Ok(())
}
