//! A read-only view of an image, or of a rectangle of one.

use super::{Region, Shape};

/// Rows of pixels, 8 bits per channel, `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub struct Pixels<'a> {
    /// The bytes from the first pixel on, including whatever follows the last one in memory.
    bytes: &'a [u8],
    shape: Shape,
    stride: usize,
}

impl<'a> Pixels<'a> {
    /// Views rows that begin every `stride` bytes; None if `bytes` does not contain them.
    pub fn new(bytes: &'a [u8], shape: Shape, stride: usize) -> Option<Self> {
        let row = shape.width.checked_mul(shape.channels)?;
        let needed = match shape.height {
            0 => 0,
            rows => stride.checked_mul(rows - 1)?.checked_add(row)?,
        };
        (stride >= row && needed <= bytes.len()).then_some(Self {
            bytes,
            shape,
            stride,
        })
    }

    /// Returns the size of the image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.shape.height
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// Returns the bytes of a pixel.
    pub fn channels(&self) -> usize {
        self.shape.channels
    }

    /// Returns the bytes from the start of one row to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns a row's pixels.
    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.shape.width * self.shape.channels]
    }

    /// Returns the rows' pixels, from the first row on.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + use<'a> {
        let this = *self;
        (0..this.shape.height).map(move |row| this.row(row))
    }

    /// Returns the bytes from a row's first pixel on, as far as the memory goes.
    pub(super) fn onward(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..]
    }

    /// Returns a view of a region, which must lie inside.
    #[must_use]
    pub fn part(&self, region: Region) -> Self {
        let inside = region.top + region.height <= self.shape.height
            && region.left + region.width <= self.shape.width;
        assert!(inside, "{region:?} is not inside of {:?}", self.shape);
        let first = region.top * self.stride + region.left * self.shape.channels;
        Self {
            bytes: &self.bytes[first.min(self.bytes.len())..],
            shape: self.shape.sized(region.height, region.width),
            stride: self.stride,
        }
    }
}

/// Random access to an image of `C` bytes per pixel.
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
