//! Errors of operations that cannot be applied to an image.
//!
//! Owns the messages. They are those of the library whose operation it is: its users read and match them.

use super::Error;

/// A requirement of an operation that an image does not meet. Sizes are `(rows, columns)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageMismatch {
    /// A crop that is larger than the image: torchvision's `RandomCrop`.
    #[error(
        "Required crop size {wanted:?} is larger than {}input image size {size:?}{}",
        if *.second && *.padded { "padded " } else { "" },
        if *.second { "." } else { "" }
    )]
    Crop {
        /// Size of the crop.
        wanted: (usize, usize),
        /// Size of the image, after padding.
        size: (usize, usize),
        /// True if every image is padded first.
        padded: bool,
        /// True for the `RandomCrop` of `transforms.v2`.
        second: bool,
    },
    /// A result without pixels: Pillow's `resize`.
    #[error("height and width must be > 0")]
    NoPixels,
    /// An image or a result without pixels: torch's interpolation.
    #[error(
        "Input and output sizes should be greater than 0, but got input (H: {}, W: {}) output (H: {}, \
         W: {})", .from.0, .from.1, .to.0, .to.1
    )]
    NoElements {
        /// Size of the image.
        from: (usize, usize),
        /// Requested size.
        to: (usize, usize),
    },
    /// An image smaller than the border that it reflects: torch's `pad`.
    #[error(
        "Argument #{}: Padding size should be less than the corresponding input dimension, but got: \
         padding ({border}, {border}) at dimension {dimension} of input {shape:?}", 10 - 2 * .dimension
    )]
    Reflection {
        /// Width of the border in pixels, on both sides.
        border: usize,
        /// 2 for rows, 3 for columns.
        dimension: usize,
        /// Shape of the image as a torch tensor.
        shape: [usize; 4],
    },
}

impl From<ImageMismatch> for Error {
    fn from(source: ImageMismatch) -> Error {
        Error::ImageMismatch {
            path: std::path::PathBuf::new(),
            source,
        }
    }
}
