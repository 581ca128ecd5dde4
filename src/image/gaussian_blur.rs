//! Gaussian blur: torchvision's `gaussian_blur` on Pillow images.
//!
//! torchvision convolves in single precision, so the order of additions affects the bytes. On the CPUs that
//! [`GaussianBlur::run`] accepts, oneDNN's depthwise convolution adds a pixel's products one by one, row
//! after row of the kernel, each with a fused multiply-add. The weights come from torch, computed from the
//! user's parameters: its exponential function is not reproducible.

use std::sync::Arc;

use super::to_byte::to_byte;
use super::{Frame, Pixels};
use crate::error::ImageMismatch;
use crate::memory::fallible::reserve;
use crate::wide::{is_fused, wide};
use crate::{Error, Result};

/// Values of a row that are summed at once.
const BLOCK: usize = 64;

/// The weights of a blur.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianBlur {
    across: Arc<[f32]>,
    down: Arc<[f32]>,
}

impl GaussianBlur {
    /// Takes the weights along a row and along a column; the middle one is the pixel's own.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an even number of weights.
    pub fn new(across: Vec<f32>, down: Vec<f32>) -> Result<Self> {
        let (width, height) = (across.len(), down.len());
        if width % 2 == 1 && height % 2 == 1 {
            return Ok(Self {
                across: across.into(),
                down: down.into(),
            });
        }
        Err(Error::transform(
            format!("blur with a kernel of {width}x{height} pixels"),
            "give odd sizes",
        ))
    }

    /// Returns the weights along a row and along a column.
    pub fn weights(&self) -> (&[f32], &[f32]) {
        (&self.across, &self.down)
    }

    /// Blurs `source` to `target`.
    ///
    /// # Errors
    ///
    /// [`Error::ImageMismatch`]: the image is too small for its border to be reflected. [`Error::Transform`]:
    /// an image of one channel, or a CPU, for which torch adds in another order; no memory.
    pub(super) fn run(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        let shape = source.shape();
        let error = |reason: &str| {
            Error::transform(
                format!("blur {}x{} pixels", shape.height, shape.width),
                reason,
            )
        };
        if shape.channels != 3 || !is_fused() {
            return Err(error("torch adds in an order of its own"));
        }
        let (left, above) = (self.across.len() / 2, self.down.len() / 2);
        for (border, dimension, side) in [(left, 3, shape.width), (above, 2, shape.height)] {
            if border >= side {
                let image_mismatch = ImageMismatch::Reflection {
                    border,
                    dimension,
                    shape: [1, shape.channels, shape.height, shape.width],
                };
                return Err(image_mismatch.into());
            }
        }
        target.reset(shape)?;
        let mut window = RowBuffer::new(source, left, self.down.len())?;
        for (at, into) in target.rows_mut().enumerate() {
            window.move_to(at, source);
            wide(
                #[inline(always)]
                || {
                    for (block, into) in into.chunks_mut(BLOCK).enumerate() {
                        let sums = self.sum(window.rows(at, block * BLOCK));
                        for (into, sum) in into.iter_mut().zip(sums.as_flattened()) {
                            *into = to_byte(sum.round_ties_even());
                        }
                    }
                },
            );
        }
        Ok(())
    }

    /// Sums the weighted neighbours of adjacent values; `rows` begin `self.across.len() / 2` pixels before
    /// the first of them.
    #[inline(always)]
    fn sum<'a>(&self, rows: impl Iterator<Item = &'a [f32]>) -> [[f32; 8]; BLOCK / 8] {
        let mut sums = [[0_f32; 8]; BLOCK / 8];
        for (row, &down) in rows.zip(&*self.down) {
            for (pixel, &across) in self.across.iter().enumerate() {
                let weight = down * across;
                let values = row[3 * pixel..][..BLOCK].as_chunks::<8>().0;
                for (sums, values) in sums.iter_mut().zip(values) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = value.mul_add(weight, *sum);
                    }
                }
            }
        }
        sums
    }
}

/// The rows around one, with their reflected borders; a new row replaces one that is no longer needed.
struct RowBuffer {
    values: Vec<f32>,
    /// Rows in `values`.
    height: usize,
    /// Values from one row to the next: the last block may extend beyond the row.
    stride: usize,
    /// Columns of the border.
    left: usize,
    /// Number of rows that were filled.
    filled: usize,
}

impl RowBuffer {
    /// Allocates `height` rows.
    fn new(source: Pixels<'_>, left: usize, height: usize) -> Result<Self> {
        let padded = 3 * (source.width() + 2 * left);
        let stride = padded.next_multiple_of(BLOCK) + BLOCK;
        let mut values = Vec::new();
        reserve(&mut values, height * stride)?;
        values.resize(height * stride, 0.0);
        Ok(Self {
            values,
            height,
            stride,
            left,
            filled: 0,
        })
    }

    /// Fills the missing rows around row `at`.
    fn move_to(&mut self, at: usize, source: Pixels<'_>) {
        while self.filled < at + self.height {
            let from = source.row(reflect(self.filled, self.height / 2, source.height()));
            let (pixels, _) = from.as_chunks::<3>();
            let into = &mut self.values[self.filled % self.height * self.stride..];
            let (into, _) = into.as_chunks_mut::<3>();
            for (column, into) in into[..pixels.len() + 2 * self.left].iter_mut().enumerate() {
                *into = pixels[reflect(column, self.left, pixels.len())].map(f32::from);
            }
            self.filled += 1;
        }
    }

    /// Returns the rows around row `at`, each from value `first` on.
    #[inline(always)]
    fn rows(&self, at: usize, first: usize) -> impl Iterator<Item = &[f32]> {
        let rows = at..at + self.height;
        rows.map(move |row| &self.values[row % self.height * self.stride..][first..])
    }
}

/// Returns the row or column, of `len`, at a position that counts from `border` before the first.
fn reflect(at: usize, border: usize, len: usize) -> usize {
    let inside = at.abs_diff(border);
    inside.min(2 * (len - 1) - inside)
}
