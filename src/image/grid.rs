//! Random access to pixels.

use super::Pixels;

/// An image of `C` bytes per pixel.
#[derive(Clone, Copy)]
pub(super) struct Grid<'a, const C: usize> {
    bytes: &'a [u8],
    stride: usize,
}

impl<'a, const C: usize> Grid<'a, C> {
    /// Views an image, whose pixels must have `C` bytes.
    pub(super) fn new(source: Pixels<'a>) -> Self {
        assert_eq!(source.channels(), C, "channels of an image");
        Self {
            bytes: source.onward(0),
            stride: source.stride(),
        }
    }

    /// Returns a pixel of the image.
    #[inline]
    pub(super) fn pixel(&self, row: usize, column: usize) -> &'a [u8; C] {
        let from = self.from(row, column);
        from.first_chunk().expect("a pixel of the image")
    }

    /// Returns the bytes from a pixel on, as far as the memory goes.
    #[inline]
    pub(super) fn from(&self, row: usize, column: usize) -> &'a [u8] {
        &self.bytes[row * self.stride + column * C..]
    }
}
