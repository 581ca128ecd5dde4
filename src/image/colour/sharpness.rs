//! Images blended with a smoothed version of themselves: `PIL.ImageEnhance.Sharpness`.

use super::blend::Blend;
use crate::Result;
use crate::image::{Frame, Pixels};
use crate::wide::wide;

/// Blends with the image after `PIL.ImageFilter.SMOOTH`, which leaves the outermost pixels unchanged.
pub(in crate::image) fn sharpness(
    factor: f64,
    source: Pixels<'_>,
    target: &mut Frame,
) -> Result<()> {
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
