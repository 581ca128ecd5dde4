//! Pillow's `reduce`: blocks of pixels become their mean (`Reduce.c`).

use super::{Frame, Pixels, Shape};
use crate::Result;

/// Scales an image down by integer factors. Blocks at the right and lower edges may be smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    down: usize,
    across: usize,
}

impl Reduce {
    /// Reduces rows and columns by these factors; None if one is 0.
    pub fn new(down: usize, across: usize) -> Option<Self> {
        (down.min(across) > 0).then_some(Self { down, across })
    }

    /// Returns the factors of rows and columns.
    pub fn factors(self) -> (usize, usize) {
        (self.down, self.across)
    }

    /// Returns the shape of an image of `shape` after the reduction.
    pub fn shape(self, shape: Shape) -> Shape {
        shape.sized(
            shape.height.div_ceil(self.down),
            shape.width.div_ceil(self.across),
        )
    }

    /// Reduces `source` to `target`.
    pub(super) fn run(self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        target.reset(self.shape(source.shape()))?;
        match source.channels() {
            3 => self.reduce::<3>(source, target),
            _ => self.reduce::<1>(source, target),
        }
        Ok(())
    }

    fn reduce<const C: usize>(self, source: Pixels<'_>, target: &mut Frame) {
        let (height, width) = (source.height(), source.width());
        for (row, into) in target.rows_mut().enumerate() {
            let top = row * self.down;
            let rows = top..height.min(top + self.down);
            for (column, into) in into.as_chunks_mut::<C>().0.iter_mut().enumerate() {
                let left = column * self.across;
                let columns = left * C..width.min(left + self.across) * C;
                let mut sums = [0_u32; C];
                for row in rows.clone() {
                    for pixel in source.row(row)[columns.clone()].as_chunks::<C>().0 {
                        for (sum, &value) in sums.iter_mut().zip(pixel) {
                            *sum = sum.wrapping_add(u32::from(value));
                        }
                    }
                }
                *into = means(sums, rows.len() * columns.len() / C);
            }
        }
    }
}

/// Returns sums of `count` bytes, divided as Pillow divides: multiplied by a reciprocal of 32 bits that is
/// computed in single precision. Everything wraps as C's unsigned integers do.
#[allow(clippy::cast_sign_loss)] // of a positive float
fn means<const C: usize>(sums: [u32; C], count: usize) -> [u8; C] {
    let count = count as u32;
    let reciprocal = (4_294_967_296.0_f32 / count.wrapping_mul(256) as f32) as u32;
    sums.map(|sum| (sum.wrapping_add(count / 2).wrapping_mul(reciprocal) >> 24) as u8)
}
