//! Images that an operation cannot take.
//!
//! Owns the words of such a refusal. They are those of the library whose operation it is, for that is
//! what its users read and catch.

use crate::Error;

/// What does not fit together. Sizes are `(rows, columns)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A part that is larger than the image, for torchvision's `RandomCrop`.
    #[error(
        "Required crop size {wanted:?} is larger than {}input image size {size:?}{}",
        if *.second && *.padded { "padded " } else { "" },
        if *.second { "." } else { "" }
    )]
    Crop {
        /// Size of the part.
        wanted: (usize, usize),
        /// Size of the image, once padded.
        size: (usize, usize),
        /// True if every image is padded first.
        padded: bool,
        /// True if it is the `RandomCrop` of `transforms.v2`.
        second: bool,
    },
    /// An image that would have no pixels, for Pillow's `resize`.
    #[error("height and width must be > 0")]
    NoPixels,
    /// An image that would have no pixels, for torch's interpolation.
    #[error(
        "Input and output sizes should be greater than 0, but got input (H: {}, W: {}) output (H: {}, \
         W: {})", .from.0, .from.1, .to.0, .to.1
    )]
    NoElements {
        /// Size of the image.
        from: (usize, usize),
        /// Size that is asked for.
        to: (usize, usize),
    },
    /// An image without as many pixels as its border reflects, for torch's `pad`.
    #[error(
        "Argument #{}: Padding size should be less than the corresponding input dimension, but got: \
         padding ({border}, {border}) at dimension {dimension} of input {shape:?}", 10 - 2 * .dimension
    )]
    Reflection {
        /// Pixels of the border, on both sides.
        border: usize,
        /// 2 for rows, 3 for columns.
        dimension: usize,
        /// Shape of the image, as torch has it.
        shape: [usize; 4],
    },
}

impl From<Misfit> for Error {
    fn from(source: Misfit) -> Error {
        Error::Misfit {
            path: std::path::PathBuf::new(),
            source,
        }
    }
}
