//! Quarter turns and mirror images: pixels only move.

use super::pixels::Grid;
use super::{Frame, Pixels, Shape};
use crate::Result;

/// The number of quarter turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One, counter-clockwise.
    Left,
    /// Two.
    Half,
    /// One, clockwise.
    Right,
}

impl Turn {
    /// Returns the shape of an image of `shape` after the turn.
    pub fn shape(self, shape: Shape) -> Shape {
        match self {
            Self::Half => shape,
            Self::Left | Self::Right => shape.sized(shape.width, shape.height),
        }
    }

    /// Turns `source` to `target`.
    pub(super) fn run(self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        target.reset(self.shape(source.shape()))?;
        match source.channels() {
            3 => self.turn::<3>(source, target),
            _ => self.turn::<1>(source, target),
        }
        Ok(())
    }

    fn turn<const C: usize>(self, source: Pixels<'_>, target: &mut Frame) {
        let (height, width) = (source.height(), source.width());
        let grid = Grid::<C>::new(source);
        for (row, into) in target.rows_mut().enumerate() {
            let into = into.as_chunks_mut::<C>().0;
            match self {
                Self::Half => {
                    let from = source.row(height - 1 - row).as_chunks::<C>().0;
                    for (pixel, &from) in into.iter_mut().zip(from.iter().rev()) {
                        *pixel = from;
                    }
                }
                Self::Left => {
                    for (column, into) in into.iter_mut().enumerate() {
                        *into = *grid.pixel(column, width - 1 - row);
                    }
                }
                Self::Right => {
                    for (column, into) in into.iter_mut().enumerate() {
                        *into = *grid.pixel(height - 1 - column, row);
                    }
                }
            }
        }
    }
}

/// Mirrors left and right.
pub(super) fn flip_horizontal(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    target.fill_rows(source, |row, into| match source.channels() {
        3 => reverse::<3>(row, into),
        _ => reverse::<1>(row, into),
    })
}

/// Mirrors top and bottom.
pub(super) fn flip_vertical(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    target.reset(source.shape())?;
    for (row, into) in source.rows().rev().zip(target.rows_mut()) {
        into.copy_from_slice(row);
    }
    Ok(())
}

fn reverse<const C: usize>(row: &[u8], into: &mut [u8]) {
    let pixels = row.as_chunks::<C>().0.iter().rev();
    for (pixel, target) in pixels.zip(into.as_chunks_mut::<C>().0) {
        *target = *pixel;
    }
}
