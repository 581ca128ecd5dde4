//! Formats of arrays and of text: from encoded bytes to the elements of one sample.
//!
//! Owns the reading of headers and contents, one format per file; [`decode`](crate::decode) reads images. Never
//! opens files: bytes come from [`Blobs`]. Invariant: for any bytes, a format returns exactly the elements that they
//! encode, or an [`Error::Decode`](crate::Error); it allocates no more than a file's size allows, whatever a header
//! claims.

mod arrays;
mod audio;
mod header;
pub mod json;
mod jsonl;
mod megatron;
mod npy;
mod npz;
mod plain;
mod pt;

use std::fmt::Debug;
use std::ops::Range;

pub use arrays::Arrays;
pub use audio::{Audio, Depth, Output, Span};
pub use header::{Header, headers};
pub use jsonl::{Element, JsonColumn, JsonLists, Jsonl};
pub use megatron::Megatron;
pub use npy::RowRange;
pub use npz::Npz;
pub use plain::{Integer, text};

use crate::column::Blobs;
use crate::error::Result;
use crate::memory::Dtype;

/// The destination of a sample's elements.
pub trait Target {
    /// Returns memory for a sample of `shape`, to be written completely, in C order; called once per sample.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error): not the shape that [`Array::shape`] returned.
    fn shaped(&mut self, shape: &[usize]) -> Result<&mut [u8]>;
}

/// Samples that are arrays, each decoded from its own bytes.
///
/// Methods are called by many threads at once.
pub trait Array: Debug + Send + Sync {
    /// Returns the element type of every sample.
    fn dtype(&self) -> Dtype;

    /// Returns the shapes that are known before any bytes are read; None if there are none.
    fn shapes(&self) -> Option<&Shapes> {
        None
    }

    /// Returns the shape of every sample, if it is known to be the same.
    fn fixed_shape(&self) -> Option<&[usize]> {
        self.shapes()?.common()
    }

    /// Returns the shape of the sample at `index`, if it is known before its bytes are read.
    fn shape(&self, index: usize) -> Option<&[usize]> {
        self.fixed_shape().or_else(|| self.shapes()?.get(index))
    }

    /// Returns the range of its bytes that is read for the sample at `index`.
    ///
    /// # Errors
    ///
    /// The sample cannot be decoded, because of its header.
    fn part(&self, _index: usize) -> Result<Range<u64>> {
        Ok(Blobs::ALL)
    }

    /// Writes the elements of the sample at `index`, of which `bytes` were read.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error): the bytes are damaged.
    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()>;
}

/// A shape for each sample, or none where it is not known.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    dims: Vec<usize>,
    ends: Vec<usize>,
    known: Vec<bool>,
    same: bool,
}

impl Shapes {
    /// Shape of the sample at `index`, if it is known.
    pub fn get(&self, index: usize) -> Option<&[usize]> {
        let known = *self.known.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        known.then(|| &self.dims[start..self.ends[index]])
    }

    /// The shape of all samples whose shape is known, if that is one.
    pub fn common(&self) -> Option<&[usize]> {
        let first = self.known.iter().position(|&known| known)?;
        self.get(first).filter(|_| self.same)
    }
}

impl<S: AsRef<[usize]>> FromIterator<Option<S>> for Shapes {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(shapes: I) -> Shapes {
        let mut all = Shapes {
            same: true,
            ..Shapes::default()
        };
        let mut first: Option<Vec<usize>> = None;
        for shape in shapes {
            if let Some(shape) = &shape {
                let first = first.get_or_insert_with(|| shape.as_ref().to_vec());
                all.same &= first == shape.as_ref();
                all.dims.extend_from_slice(shape.as_ref());
            }
            all.known.push(shape.is_some());
            all.ends.push(all.dims.len());
        }
        all
    }
}
