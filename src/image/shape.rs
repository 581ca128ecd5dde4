//! How large images are, and parts of them.

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
    /// Returns the same kind of image with another number of rows and columns.
    #[must_use]
    pub fn sized(self, height: usize, width: usize) -> Self {
        Self {
            height,
            width,
            ..self
        }
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
    /// Returns the region that is all of an image.
    pub fn whole(shape: Shape) -> Self {
        Self {
            top: 0,
            left: 0,
            height: shape.height,
            width: shape.width,
        }
    }

    /// Returns a part of this region, `inner` being counted from its first pixel.
    #[must_use]
    pub fn inside(self, inner: Self) -> Self {
        Self {
            top: self.top + inner.top,
            left: self.left + inner.left,
            ..inner
        }
    }

    /// Returns the same pixels as a part of `outer`, in which they lie.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self {
            top: self.top - outer.top,
            left: self.left - outer.left,
            ..self
        }
    }
}
