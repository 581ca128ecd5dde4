//! Columns: the storage of a dataset's values.
//!
//! Owns storage, and the reading of one sample. The [`program`](crate::program) knows which columns make a sample, and
//! how a batch of them is collated. A new kind of storage is one file here that implements [`Column`].

mod blobs;
mod convert;
mod derived;
mod encoded;
mod files;
mod flat;
mod layout;
mod lines;
mod lists;
mod offsets;
mod ragged;
mod rows;
mod stamp;
mod strided;

use std::fmt::Debug;
use std::ops::Range;

pub use blobs::{BlobSource, Blobs, Look, Span, Spans};
pub use convert::{Constants, Conversion, Operator};
pub use derived::{Concat, Select, holder};
pub use encoded::{Blob, Place, Refused};
pub(crate) use files::open_regular;
pub use files::{Files, Opened, Paths};
pub use flat::{Documents, Flat};
pub use layout::{Kind, Layout};
pub use lines::{Lines, Reader};
pub use lists::Lists;
pub use offsets::{Numbers, Offsets};
pub use ragged::{Binary, Ragged};
pub use rows::{Rows, Scratch};
pub use stamp::Stamp;
pub use strided::Strided;

use crate::collate::Shape;
use crate::error::Result;
use crate::stats::Stages;

/// One value of each sample.
///
/// Says the layout of its samples and their shapes, as far as they are known, and writes samples to memory of a
/// batch. What is copied implements [`Column::gather`] or [`Column::bytes`]; what is decoded, [`Column::decode`].
/// Many threads call at once, with indices below [`Column::len`]. An error of one sample of several says which
/// ([`Error::at`](crate::Error::at)).
pub trait Column: Debug + Send + Sync {
    /// Returns the number of samples.
    fn len(&self) -> usize;

    /// Returns true if there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what all samples have in common.
    fn layout(&self) -> &Layout;

    /// Returns the shape of the sample at `index`, if it is known before it is made; None for text, and for
    /// lists that are not arrays.
    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        match self.source(index)? {
            Some((column, at)) => column.shape(at),
            None => Ok(self.layout().shape.clone()),
        }
    }

    /// Returns the maximum of rows of a sample of [`Kind::Ragged`], if it is known.
    fn longest(&self) -> Option<usize> {
        None
    }

    /// Returns the bytes of a sample, as far as they are known before it is made; the mean where they differ.
    fn sample_bytes(&self) -> usize {
        self.layout().sample_bytes()
    }

    /// Writes the samples at `indices`, all of one shape, to `out`, one after the other.
    fn gather(&self, _indices: &[usize], _scratch: &mut Scratch, _out: &mut [u8]) -> Result<()> {
        Ok(())
    }

    /// Returns the bytes, or the encoded text, of samples that are not fetched.
    fn bytes(&self, _indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        Ok(Vec::new())
    }

    /// Prefetches the shape of the sample at `index`, which is needed soon.
    fn prefetch_shape(&self, index: usize) {
        if let Ok(Some((column, at))) = self.source(index) {
            column.prefetch_shape(at);
        }
    }

    /// Prefetches the sample at `index`, which is copied soon.
    fn prefetch(&self, index: usize) {
        if let Ok(Some((column, at))) = self.source(index) {
            column.prefetch(at);
        }
    }

    /// Returns the column from which the sample at `index` is taken, and its index there; None if it is this one.
    fn source(&self, _index: usize) -> Result<Option<(&dyn Column, usize)>> {
        Ok(None)
    }

    /// Returns the ragged array from which all samples are taken, if there is one.
    fn ragged(&self) -> Option<&Ragged> {
        None
    }

    /// Returns the rows of [`Column::ragged`] that the samples at `indices` are; None if there is no such array.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets), [`Error::Index`](crate::Error::Index): the owner of the offsets, or
    /// of a selection, changed them.
    fn ranges(&self, _indices: &[usize]) -> Result<Option<Vec<Range<usize>>>> {
        Ok(None)
    }

    /// Returns the column itself if its samples are lists of another column's.
    fn lists(&self) -> Option<&Lists> {
        None
    }

    /// Returns the encoded bytes that are read before samples are made.
    fn blobs(&self) -> Option<&Blobs> {
        None
    }

    /// Returns the range of its encoded bytes that is read for the sample at `index`.
    fn part(&self, _index: usize) -> Result<Range<u64>> {
        Ok(Blobs::ALL)
    }

    /// Returns true if Python is to decode files that cannot even be read.
    fn falls_back_if_unreadable(&self) -> bool {
        false
    }

    /// Decodes the sample at `index`, of which `blob` was fetched; returns an image that native code refuses.
    fn decode(
        &self,
        _index: usize,
        _blob: Option<Blob>,
        _place: Place<'_>,
        _stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        Ok(None)
    }
}
