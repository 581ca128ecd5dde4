//! Rotation around the colour wheel: torchvision's `adjust_hue` on Pillow's HSV images.

use super::to_byte::double_to_byte;
use super::{Frame, Pixels};
use crate::wide::wide;
use crate::{Error, Result};

/// Pixels that are converted at once.
const LANES: usize = 32;

/// Rotates the hue by `factor` of the wheel. Grey images have no hue and stay.
pub(super) fn hue(factor: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    if !(-0.5..=0.5).contains(&factor) {
        return Err(Error::transform(
            format!("turn the hue by {factor}"),
            "give -0.5 to 0.5",
        ));
    }
    let steps = ((factor * 255.0) as i8).cast_unsigned(); // towards zero; hues wrap around
    target.fill_rows(source, |row, into| {
        into.copy_from_slice(row);
        if source.channels() == 3 {
            turn_row(into.as_chunks_mut::<3>().0, steps);
        }
    })
}

fn turn_row(row: &mut [[u8; 3]], steps: u8) {
    wide(
        #[inline(always)]
        || {
            for pixels in row.chunks_mut(LANES) {
                let mut channels = [[0; LANES]; 3];
                for (at, pixel) in pixels.iter().enumerate() {
                    for (channel, &value) in channels.iter_mut().zip(pixel) {
                        channel[at] = value;
                    }
                }
                let [reds, greens, blues] = &mut channels;
                for ((red, green), blue) in reds.iter_mut().zip(greens).zip(blues) {
                    [*red, *green, *blue] = turn([*red, *green, *blue], steps);
                }
                for (at, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = channels.map(|channel| channel[at]);
                }
            }
        },
    );
}

/// Rotates a colour: the values of `rgb2hsv_row` and `hsv2rgb` in Pillow's Convert.c, without branches.
///
/// Single and double precision are used as in the original: their rounding affects the bytes.
#[inline(always)]
fn turn([red, green, blue]: [u8; 3], steps: u8) -> [u8; 3] {
    let (high, low) = (red.max(green).max(blue), red.min(green).min(blue));
    let middle = red.max(green).min(red.min(green).max(blue));
    let chroma = f32::from(high - low);
    // Of the original's three quotients one is 0 and one is 1, which leaves one rounded sum.
    let quotient = f32::from(high - middle) / chroma.max(1.0);
    let (start, sign) = if red == high && blue == low {
        (1.0, -1.0)
    } else if red == high {
        (-1.0, 1.0)
    } else if green == high && red == low {
        (3.0, -1.0)
    } else if green == high {
        (1.0, 1.0)
    } else if red == low {
        (3.0, 1.0)
    } else {
        (5.0, -1.0)
    };
    let turns = f64::from(start + sign * quotient) / 6.0 + 1.0;
    let turn = (if turns >= 1.0 { turns - 1.0 } else { turns }) as f32;
    let hue = double_to_byte(f64::from(turn) * 255.0);
    let saturation = double_to_byte(f64::from(chroma / f32::from(high).max(1.0)) * 255.0);

    let sixths = f64::from(hue.wrapping_add(steps)) * 6.0 / 255.0;
    let sector = double_to_byte(sixths);
    let part = (sixths - f64::from(sector)) as f32;
    let full = f32::from(saturation) / 255.0;
    let scaled = |less: f64| double_to_byte(f64::from(high) * (1.0 - less) + 0.5);
    let lowest = scaled(f64::from(full));
    let falling = scaled(f64::from(full * part));
    let rising = scaled(f64::from(full) * (1.0 - f64::from(part)));
    let red = pick(sector, [high, falling, lowest, lowest, rising, high]);
    let green = pick(sector, [rising, high, high, falling, lowest, lowest]);
    let blue = pick(sector, [lowest, lowest, rising, high, high, falling]);
    [red, green, blue]
}

/// Returns the value for one of 6 sectors; the seventh is the first.
#[inline(always)]
fn pick(sector: u8, [first, second, third, fourth, fifth, sixth]: [u8; 6]) -> u8 {
    let late = if sector == 4 { fifth } else { first };
    let late = if sector == 5 { sixth } else { late };
    let early = if sector == 1 { second } else { third };
    let early = if sector == 3 { fourth } else { early };
    if (1..=3).contains(&sector) {
        early
    } else {
        late
    }
}
