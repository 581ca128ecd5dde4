//! Pixels added around an image.

use super::{Frame, Pixels};
use crate::Result;

/// How many pixels are added on each side, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// Columns before the first.
    pub left: usize,
    /// Rows before the first.
    pub top: usize,
    /// Columns behind the last.
    pub right: usize,
    /// Rows behind the last.
    pub bottom: usize,
    /// Value of each channel of the added pixels.
    pub fill: [u8; 3],
}

impl Pad {
    /// Returns (height, width) of an image of `height` by `width` pixels once padded.
    pub fn size(&self, height: usize, width: usize) -> (usize, usize) {
        (
            self.top + height + self.bottom,
            self.left + width + self.right,
        )
    }

    /// Pads `source` into `target`.
    pub(super) fn run(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        let (height, width) = self.size(source.height(), source.width());
        let channels = source.channels();
        target.reset(source.shape().sized(height, width))?;
        for pixel in target.pixels_mut().chunks_exact_mut(channels) {
            pixel.copy_from_slice(&self.fill[..channels]);
        }
        let inner = target.rows_mut().skip(self.top);
        for (row, into) in source.rows().zip(inner) {
            into[self.left * channels..][..row.len()].copy_from_slice(row);
        }
        Ok(())
    }
}
