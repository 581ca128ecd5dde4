//! A decoded image whose memory is reused for the next one.

use super::{Pixels, Shape};
use crate::Result;
use crate::memory::fallible::resize;

/// Bytes that may be read after the last pixel: vector loads take whole registers.
pub(super) const SLACK_BYTES: usize = 32;

/// Memory up to this size is kept even if the next image is small.
const KEPT_BYTES: usize = 64 << 20;

/// Rows of pixels, grey and RGB if anything is to be done with them, 8 bits per channel, without padding between rows.
#[derive(Debug)]
pub struct Frame {
    shape: Shape,
    /// At least `height * width * channels + SLACK_BYTES` bytes once reset.
    bytes: Vec<u8>,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            shape: Shape::new(0, 0, 3),
            bytes: Vec::new(),
        }
    }
}

impl Frame {
    /// Resizes the frame; its pixels are then arbitrary.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`](crate::Error::Memory), without a path;
    /// [`Error::Transform`](crate::Error::Transform) when no memory can have as many bytes.
    pub fn reset(&mut self, shape: Shape) -> Result<()> {
        let pixels = shape.bytes().ok_or_else(|| shape.too_large())?;
        let needed = pixels + SLACK_BYTES;
        if self.bytes.len() > KEPT_BYTES && needed < self.bytes.len() / 4 {
            self.bytes = Vec::new(); // do not hold the memory of one huge image forever
        }
        if needed > self.bytes.len() {
            resize(&mut self.bytes, needed)?;
        }
        self.shape = shape;
        Ok(())
    }

    /// Returns the size of the image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the bytes of one row.
    pub fn stride(&self) -> usize {
        self.shape.width * self.shape.channels
    }

    /// Returns a view of the whole image; the slack follows its last pixel.
    pub fn view(&self) -> Pixels<'_> {
        Pixels::new(&self.bytes, self.shape, self.stride()).expect("a frame holds its pixels")
    }

    /// Returns the pixels, row after row.
    pub fn pixels(&self) -> &[u8] {
        &self.bytes[..self.shape.height * self.stride()]
    }

    /// Returns the pixels, for writing.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        let len = self.shape.height * self.stride();
        &mut self.bytes[..len]
    }

    /// Returns the rows' pixels, for writing.
    pub fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let stride = self.stride().max(1);
        self.pixels_mut().chunks_exact_mut(stride)
    }

    /// Makes an image of the shape of `source`, row by row.
    #[inline]
    pub(super) fn fill_rows(
        &mut self,
        source: Pixels<'_>,
        mut fill: impl FnMut(&[u8], &mut [u8]),
    ) -> Result<()> {
        self.reset(source.shape())?;
        for (row, into) in source.rows().zip(self.rows_mut()) {
            fill(row, into);
        }
        Ok(())
    }

    /// Copies an image.
    pub(super) fn copy(&mut self, source: Pixels<'_>) -> Result<()> {
        self.fill_rows(source, |row, into| into.copy_from_slice(row))
    }

    /// Reduces each pixel to `channels` bytes, which the caller has packed at the front; they must not be
    /// more than before. Keeps the memory.
    pub(crate) fn narrow(&mut self, channels: usize) {
        self.shape.channels = self.shape.channels.min(channels);
    }
}
