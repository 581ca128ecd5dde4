//! Reasons why samples do not make one field, and why an operation cannot be applied to an image. The name of the field
//! is added by the error. The messages about images are those of the library whose operation it is: its users read and
//! match them.

use std::fmt;

use super::Error;

/// The difference between samples that cannot be collated, and the field's dimension or limit.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // positions in the batch, shapes of samples, limits
pub enum Mismatch {
    /// Another number of dimensions than the first sample's.
    #[error(
        "sample {position} of the batch has {}, the first has {}",
        Dimensions(shape),
        Dimensions(first)
    )]
    Rank {
        position: usize,
        shape: Vec<usize>,
        first: Vec<usize>,
    },
    /// A size that differs in a dimension that is not padded.
    #[error(
        "sample {position} of the batch has shape {}, the first has {}, and dimension {dim} is \
         not one that is padded; name it in Pad(dim=...)",
        Shape(shape),
        Shape(first)
    )]
    Size {
        position: usize,
        dim: usize,
        shape: Vec<usize>,
        first: Vec<usize>,
    },
    /// A size above the limit that `option` sets.
    #[error(
        "sample {position} of the batch has shape {}, more than {option}={limit} in dimension \
         {dim}; raise {option}, or cut samples with overlong='truncate'",
        Shape(shape)
    )]
    TooLong {
        position: usize,
        dim: usize,
        shape: Vec<usize>,
        option: &'static str,
        limit: usize,
    },
    /// Another element type than the first sample's.
    #[error(
        "sample {position} of the batch is {dtype}, the first is {first}; convert them to one \
         dtype in the dataset"
    )]
    Dtype {
        position: usize,
        dtype: &'static str,
        first: &'static str,
    },
    /// A dimension that samples do not have.
    #[error("a sample of shape {} has no dimension {dim}", Shape(shape))]
    Dim { dim: isize, shape: Vec<usize> },
    /// A padding value that the element type cannot hold.
    #[error("{dtype} cannot hold the padding value {fill}; give another padding_value")]
    Fill { fill: String, dtype: &'static str },
    /// A mask of too few dimensions.
    #[error("its mask needs at least {least} dimensions; raise mask_rank")]
    Mask { least: usize },
    /// Fields of one sample with different lengths.
    #[error(
        "sample {position} of the batch has shape ({len},), its tokens ({tokens},); a row needs \
         one for each token"
    )]
    Unaligned {
        position: usize,
        len: usize,
        tokens: usize,
    },
    /// A document with more than one dimension.
    #[error(
        "sample {position} of the batch has shape {}, a document has one dimension",
        Shape(shape)
    )]
    DocumentRank { position: usize, shape: Vec<usize> },
    /// A sample longer than a row.
    #[error(
        "sample {position} of the batch has shape ({len},), more than max_length={max_length}; \
         raise it, or give another overlong"
    )]
    Overlong {
        position: usize,
        len: usize,
        max_length: u32,
    },
    /// An empty document.
    #[error("sample {position} of the batch has no tokens")]
    EmptyDocument { position: usize },
    /// More tokens than int32 boundaries can count.
    #[error(
        "{rows} rows of {width} are more than the int32 boundaries between documents can count; \
         pack fewer samples"
    )]
    TooManyTokens { rows: usize, width: usize },
    /// More rows than allowed.
    #[error(
        "the batch needs {needed} rows, more than rows={rows}; raise rows, or pack fewer samples"
    )]
    TooManyRows { needed: usize, rows: usize },
}

impl Mismatch {
    /// Makes the error of a field, whose name is as Python writes it.
    pub fn of_field(self, field: &str) -> Error {
        Error::Mismatch {
            field: field.into(),
            mismatch: self,
        }
    }

    /// Returns the position in the batch of the sample that does not fit; None if it is no single sample.
    pub fn position(&self) -> Option<usize> {
        match self {
            Mismatch::Rank { position, .. }
            | Mismatch::Size { position, .. }
            | Mismatch::TooLong { position, .. }
            | Mismatch::Dtype { position, .. }
            | Mismatch::Unaligned { position, .. }
            | Mismatch::DocumentRank { position, .. }
            | Mismatch::EmptyDocument { position }
            | Mismatch::Overlong { position, .. } => Some(*position),
            _ => None,
        }
    }
}

/// A requirement of an operation that an image does not meet. Sizes are `(rows, columns)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields whose names say it
pub enum ImageMismatch {
    /// A crop that is larger than the image: torchvision's `RandomCrop`.
    #[error(
        "Required crop size {wanted:?} is larger than {}input image size {size:?}{}",
        if *.second && *.padded { "padded " } else { "" },
        if *.second { "." } else { "" }
    )]
    Crop {
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
        from: (usize, usize),
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

struct Dimensions<'a>(&'a [usize]);

impl fmt::Display for Dimensions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.0.len();
        let plural = if rank == 1 { "" } else { "s" };
        write!(f, "{rank} dimension{plural}, shape {}", Shape(self.0))
    }
}

/// A shape as a Python tuple.
struct Shape<'a>(&'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [size] => write!(f, "({size},)"),
            sizes => {
                let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                write!(f, "({})", sizes.join(", "))
            }
        }
    }
}
