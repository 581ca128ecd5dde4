//! Formats of arrays and of text: from encoded bytes to the elements of one sample.
//!
//! Owns the reading of headers and contents, one format per file; [`decode`](crate::decode) reads images. Never
//! opens files: bytes come from [`Blobs`]. Invariant: for any bytes, a format returns exactly the elements that they
//! encode, or an [`Error::Decode`](crate::Error); it allocates no more than a file's size allows, whatever a header
//! claims.

mod audio;
mod deflate;
mod header;
pub mod json;
mod jsonl;
mod megatron;
mod npy;
mod npz;
mod order;
mod plain;
mod pt;
mod shapes;

use std::fmt::Debug;
use std::ops::Range;

pub use audio::{Audio, Depth, Output, Span};
pub use header::{Header, headers};
pub use jsonl::{Element, JsonColumn, JsonLists, Jsonl};
pub use megatron::Megatron;
pub use npy::{Npy, RowRange};
pub use npz::Npz;
pub use plain::{Integer, text};
pub use pt::Pt;
pub use shapes::Shapes;

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
