//! Sizes of images, and regions of them.

use crate::Error;

/// Size of an image, in pixels, and the bytes of each pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Bytes of a pixel: 1 for grey, 3 for RGB.
    pub channels: usize,
}

impl Shape {
    /// An image of `height` rows and `width` columns, with `channels` bytes per pixel.
    pub const fn new(height: usize, width: usize, channels: usize) -> Self {
        Self {
            height,
            width,
            channels,
        }
    }

    /// Returns the same kind of image with other numbers of rows and columns.
    #[must_use]
    pub fn sized(self, height: usize, width: usize) -> Self {
        Self {
            height,
            width,
            ..self
        }
    }

    /// Returns the same size with another number of bytes per pixel.
    #[must_use]
    pub fn with_channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// Returns the size of the pixels in bytes; None on overflow.
    pub(super) fn bytes(self) -> Option<usize> {
        let pixels = self.height.checked_mul(self.width)?;
        let bytes = pixels.checked_mul(self.channels)?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    /// Returns the error of an image of this size for which there is no memory.
    pub(super) fn too_large(self) -> Error {
        Error::transform(
            format!("make an image of {}x{} pixels", self.height, self.width),
            "there is not enough memory for it",
        )
    }
}

/// A rectangle of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First row.
    pub top: usize,
    /// First column.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Region {
    /// The region of `height` by `width` pixels whose first is in row `top` and column `left`.
    pub const fn new(top: usize, left: usize, height: usize, width: usize) -> Self {
        Self {
            top,
            left,
            height,
            width,
        }
    }

    /// Returns the region of a whole image.
    pub fn whole(shape: Shape) -> Self {
        Self {
            top: 0,
            left: 0,
            height: shape.height,
            width: shape.width,
        }
    }

    /// Returns true if the region lies in an image of `shape`.
    pub fn lies_in(self, shape: Shape) -> bool {
        let ends_in = |first: usize, count, all| {
            let end = first.checked_add(count);
            end.is_some_and(|end| end <= all)
        };
        ends_in(self.top, self.height, shape.height) && ends_in(self.left, self.width, shape.width)
    }

    /// Returns a part of this region; `inner` counts from its first pixel.
    #[must_use]
    pub fn inside(self, inner: Self) -> Self {
        Self {
            top: self.top + inner.top,
            left: self.left + inner.left,
            ..inner
        }
    }

    /// Returns the same pixels relative to `outer`, which must contain them.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self {
            top: self.top - outer.top,
            left: self.left - outer.left,
            ..self
        }
    }
}
