//! The operations that a user can ask for.

use super::{Filter, PassOrder};

/// One operation of an image pipeline; names and meanings are torchvision's.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Scales the image.
    Resize {
        /// To which size.
        size: Size,
        /// How pixels are weighted.
        filter: Filter,
        /// Which dimension is scaled first; it shows in the last bit.
        order: PassOrder,
    },
    /// Cuts the middle out; what lies outside of the image is black.
    CenterCrop {
        /// Rows of the result.
        height: usize,
        /// Columns of the result.
        width: usize,
    },
    /// Makes uint8 `(H, W, 3)` float32 `(3, H, W)` between 0 and 1.
    ToTensor,
    /// Subtracts a mean from each channel, then divides by a standard deviation.
    Normalize {
        /// Per channel.
        mean: [f32; 3],
        /// Per channel; none is zero.
        std: [f32; 3],
    },
}

/// The size that an image is scaled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Pixels of the shorter side; the longer one follows in proportion, rounded down.
    Shorter(usize),
    /// Both sides, whatever the proportion was.
    Exact {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

impl Size {
    /// Returns (height, width) of an image of `height` by `width` pixels once scaled.
    ///
    /// As torchvision's `_compute_resized_output_size`: its `int(size * long / short)` divides in
    /// floating point, which for these magnitudes truncates to the same integer.
    pub fn of(self, height: usize, width: usize) -> (usize, usize) {
        match self {
            Self::Exact { height, width } => (height, width),
            Self::Shorter(size) if width <= height => (size * height / width.max(1), size),
            Self::Shorter(size) => (size, size * width / height.max(1)),
        }
    }
}
