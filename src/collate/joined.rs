//! A field in the making whose samples lie one after the other.

use super::ragged::Flat;
use super::seat::Seat;
use super::{Dense, Mismatch, Shape, bytes_of, longs, sizes};
use crate::error::{Error, Result};
use crate::memory::{Dtype, Writer, lease};

/// Samples one after the other.
#[derive(Debug)]
pub struct JoinedField {
    /// `(sum of lengths, ...)`.
    pub values: Dense,
    /// int64 `(B + 1,)`.
    pub offsets: Dense,
    /// The least and the greatest length.
    pub extremes: (usize, usize),
}

/// Where they meet.
#[derive(Debug)]
pub(super) struct Joined {
    writer: Writer,
    flat: Flat,
    dtype: Dtype,
    shapes: Vec<Shape>,
}

impl Joined {
    pub(super) fn new(
        dtype: Dtype,
        shapes: Vec<Shape>,
        named: impl Fn(Mismatch) -> Error,
    ) -> Result<Joined> {
        let flat = Flat::of(shapes.iter().map(Shape::as_slice)).map_err(named)?;
        let rows = flat.shape[0];
        let row = bytes_of(&flat.shape[1..], dtype.itemsize());
        let memory = lease(row.saturating_mul(rows))?;
        Ok(Joined {
            writer: Writer::new(memory.into(), rows, row),
            flat,
            dtype,
            shapes,
        })
    }

    /// Shape of the sample at `position`.
    pub(super) fn shape(&self, position: usize) -> &[usize] {
        &self.shapes[position]
    }

    /// Claims the place of a sample.
    pub(super) fn seat(&self, position: usize) -> Result<Seat<'_>> {
        let range = self.flat.offsets[position]..self.flat.offsets[position + 1];
        let rows = self.writer.rows(range);
        Ok(Seat::row(rows.ok_or(Error::Twice { position })?))
    }

    pub(super) fn finish(self) -> Result<JoinedField> {
        let offsets = self.flat.offsets.iter().copied();
        Ok(JoinedField {
            offsets: longs(sizes(self.flat.offsets.len(), &[]), offsets)?,
            extremes: self.flat.extremes(),
            values: Dense {
                memory: self.writer.finish(),
                shape: self.flat.shape,
                dtype: self.dtype,
            },
        })
    }
}
