//! Formats of arrays and of text: from encoded bytes to the elements of one sample.
//!
//! Owns how headers and contents are read, one format per file; images are
//! [`decode`](crate::decode)'s. Refuses to open files: bytes come from
//! [`Blobs`]. Invariant: whatever the bytes are, a format gives exactly the
//! elements that they stand for, or an [`Error::Decode`](crate::Error); it allocates no more than a
//! file's size allows, whatever a header claims.

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
pub use plain::{Integer, Utf8};
pub use pt::Pt;
pub use shapes::Shapes;

use crate::column::Blobs;
use crate::error::Result;
use crate::memory::Dtype;

/// Where the elements of a sample are written.
pub trait Target {
    /// Returns memory for a sample of `shape`, to be written whole, in C order; asked once per sample.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error): another shape was announced by [`Array::shape`].
    fn shaped(&mut self, shape: &[usize]) -> Result<&mut [u8]>;
}

/// Samples that are arrays, one for each run of encoded bytes.
///
/// Methods are called by many threads at once.
pub trait Array: Debug + Send + Sync {
    /// Element type of every sample.
    fn dtype(&self) -> Dtype;

    /// Shape of every sample, if it is known to be the same.
    fn fixed_shape(&self) -> Option<&[usize]>;

    /// Shape of the sample at `index`, if it is known before its bytes are read.
    fn shape(&self, index: usize) -> Option<&[usize]>;

    /// Which of its bytes are read for the sample at `index`.
    ///
    /// # Errors
    ///
    /// Why the sample cannot be made at all: what was wrong with its header.
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

/// Samples that are texts, one for each run of encoded bytes.
pub trait Text: Debug + Send + Sync {
    /// Returns the text of the sample at `index`, of which all `bytes` were read.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error): the bytes are no such text.
    fn text(&self, index: usize, bytes: &[u8]) -> Result<Box<str>>;
}
