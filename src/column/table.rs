//! Samples that are read on demand, many at once: windows of a file, rows of a table.

use std::fmt::Debug;

use crate::error::Result;
use crate::memory::Dtype;

/// The values of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Rows of one shape; a sample is one row.
    Rows(Dtype),
    /// Rows of one shape; a sample is several of them.
    Ragged(Dtype),
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

/// Storage that produces samples itself, for whole lists of indices.
///
/// Methods are called by many threads at once. A new kind of storage implements this, and its
/// program treats it as [`Rows`](super::Rows) or [`Ragged`](super::Ragged).
pub trait Table: Debug + Send + Sync {
    /// Returns the number of samples.
    fn len(&self) -> usize;

    /// Returns true if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of its samples.
    fn values(&self) -> Values;

    /// Returns the shape of a row; empty for numbers, text and bytes.
    fn row_shape(&self) -> &[usize] {
        &[]
    }

    /// Returns the number of rows of the sample at `index`, which must be below [`Table::len`], of [`Values::Ragged`].
    fn rows_of(&self, _index: usize) -> Result<usize> {
        Ok(1)
    }

    /// Writes the samples at `indices`, all of one shape, to `out`, one after the other; for [`Values::Rows`]
    /// and [`Values::Ragged`].
    fn gather(&self, _indices: &[usize], _out: &mut [u8]) -> Result<()> {
        Ok(())
    }

    /// Returns the text, or the bytes, of the sample at `index`.
    fn bytes(&self, _index: usize) -> Result<Box<[u8]>> {
        Ok(Box::default())
    }

    /// Returns the texts, or the bytes, of the samples at `indices`.
    fn all_bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        let places = indices.iter().enumerate();
        let all = places.map(|(place, &index)| self.bytes(index).map_err(|error| error.at(place)));
        all.collect()
    }
}
