//! Reasons why samples do not make one field. The field's name is added by the error.

use std::fmt;

/// The difference between samples that cannot be collated, and the field's dimension or limit.
#[derive(Debug)]
#[allow(missing_docs)] // positions in the batch, shapes of samples, limits
pub enum Mismatch {
    /// Another number of dimensions than the first sample's.
    Rank {
        position: usize,
        shape: Vec<usize>,
        first: Vec<usize>,
    },
    /// A size that differs in a dimension that is not padded.
    Size {
        position: usize,
        dim: usize,
        shape: Vec<usize>,
        first: Vec<usize>,
    },
    /// A size above the limit that `option` sets.
    TooLong {
        position: usize,
        dim: usize,
        shape: Vec<usize>,
        option: &'static str,
        limit: usize,
    },
    /// Another element type than the first sample's.
    Dtype {
        position: usize,
        dtype: &'static str,
        first: &'static str,
    },
    /// A dimension that samples do not have.
    Dim { dim: isize, shape: Vec<usize> },
    /// A padding value that the element type cannot hold.
    Fill { fill: String, dtype: &'static str },
    /// A mask of too few dimensions.
    Mask { least: usize },
    /// Fields of one sample with different lengths.
    Unaligned {
        position: usize,
        len: usize,
        tokens: usize,
    },
    /// A document with more than one dimension.
    DocumentRank { position: usize, shape: Vec<usize> },
    /// A sample longer than a row.
    Overlong {
        position: usize,
        len: usize,
        max_length: u32,
    },
    /// An empty document.
    EmptyDocument { position: usize },
    /// More tokens than int32 boundaries can count.
    TooManyTokens { rows: usize, width: usize },
    /// More rows than allowed.
    TooManyRows { needed: usize, rows: usize },
}

impl Mismatch {
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
            Mismatch::Dim { .. }
            | Mismatch::Fill { .. }
            | Mismatch::Mask { .. }
            | Mismatch::TooManyTokens { .. }
            | Mismatch::TooManyRows { .. } => None,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Rank {
                position,
                shape,
                first,
            } => write!(
                f,
                "sample {position} of the batch has {}, the first has {}",
                Dimensions(shape),
                Dimensions(first)
            ),
            Mismatch::Size {
                position,
                dim,
                shape,
                first,
            } => write!(
                f,
                "sample {position} of the batch has shape {}, the first has {}, and dimension {dim} is \
                 not one that is padded; name it in Pad(dim=...)",
                Shape(shape),
                Shape(first)
            ),
            Mismatch::TooLong {
                position,
                dim,
                shape,
                option,
                limit,
            } => write!(
                f,
                "sample {position} of the batch has shape {}, more than {option}={limit} in dimension \
                 {dim}; raise {option}, or cut samples with overlong='truncate'",
                Shape(shape)
            ),
            Mismatch::Dtype {
                position,
                dtype,
                first,
            } => write!(
                f,
                "sample {position} of the batch is {dtype}, the first is {first}; convert them to one \
                 dtype in the dataset"
            ),
            Mismatch::Dim { dim, shape } => write!(
                f,
                "a sample of shape {} has no dimension {dim}",
                Shape(shape)
            ),
            Mismatch::Fill { fill, dtype } => {
                write!(
                    f,
                    "{dtype} cannot hold the padding value {fill}; give another padding_value"
                )
            }
            Mismatch::Mask { least } => {
                write!(
                    f,
                    "its mask needs at least {least} dimensions; raise mask_rank"
                )
            }
            Mismatch::Unaligned {
                position,
                len,
                tokens,
            } => write!(
                f,
                "sample {position} of the batch has shape ({len},), its tokens ({tokens},); a row needs \
                 one for each token"
            ),
            Mismatch::DocumentRank { position, shape } => write!(
                f,
                "sample {position} of the batch has shape {}, a document has one dimension",
                Shape(shape)
            ),
            Mismatch::Overlong {
                position,
                len,
                max_length,
            } => write!(
                f,
                "sample {position} of the batch has shape ({len},), more than max_length={max_length}; \
                 raise it, or give another overlong"
            ),
            Mismatch::EmptyDocument { position } => {
                write!(f, "sample {position} of the batch has no tokens")
            }
            Mismatch::TooManyTokens { rows, width } => write!(
                f,
                "{rows} rows of {width} are more than the int32 boundaries between documents can count; \
                 pack fewer samples"
            ),
            Mismatch::TooManyRows { needed, rows } => write!(
                f,
                "the batch needs {needed} rows, more than rows={rows}; raise rows, or pack fewer samples"
            ),
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
