//! The decoded values of one row group, or of a whole column.

use crate::column::{Column, Numbers, Ragged, Rows, Scratch};
use crate::error::{Error, Result};
use crate::memory::fallible::{collect, reserve};
use crate::memory::{Dtype, View};

/// Values as they were decoded.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) values: View,
    pub(super) dtype: Dtype,
    /// The start of each sample, and the end of the last, of samples that are several values.
    pub(super) offsets: Option<Vec<i64>>,
}

/// Values that samples are copied from.
#[derive(Debug)]
pub(super) enum Decoded {
    Rows(Rows),
    Ragged(Ragged),
}

impl Part {
    /// Its bytes.
    pub(super) fn bytes(&self) -> usize {
        self.values.len() + self.offsets.as_ref().map_or(0, |offsets| offsets.len() * 8)
    }

    /// Joins parts of one column, at least one, in their order; None: there is no memory for that.
    pub(super) fn join(mut parts: Vec<Part>) -> Option<Part> {
        if parts.len() < 2 {
            return parts.pop();
        }
        let dtype = parts[0].dtype;
        let bytes = parts.iter().map(|part| part.values.len()).sum();
        let mut values = Vec::new();
        reserve(&mut values, bytes).ok()?;
        let counts = parts.iter().map(|part| part.offsets.as_ref().map(Vec::len));
        let mut offsets = match counts.sum::<Option<usize>>() {
            Some(count) => {
                let mut offsets = Vec::new();
                reserve(&mut offsets, count).ok()?;
                offsets.push(0);
                Some(offsets)
            }
            None => None,
        };
        for part in parts {
            let before = (values.len() / dtype.itemsize()).cast_signed() as i64;
            values.extend_from_slice(part.values.bytes(0, part.values.len()));
            if let (Some(all), Some(more)) = (&mut offsets, part.offsets) {
                all.extend(more.iter().skip(1).map(|offset| before + offset));
            }
        }
        Some(Part {
            values: View::owned(values),
            dtype,
            offsets,
        })
    }

    /// Makes samples of the values.
    pub(super) fn decoded(self) -> Result<Decoded> {
        let rows = |view: View, dtype: Dtype| {
            let (len, size) = (view.len() / dtype.itemsize(), dtype.itemsize());
            let rows = Rows::new(view, 0, &[len], &[size.cast_signed()], dtype);
            rows.ok_or(Error::Abandoned)
        };
        let values = rows(self.values, self.dtype)?;
        let Some(offsets) = self.offsets else {
            return Ok(Decoded::Rows(values));
        };
        let offsets = Numbers::new(rows(View::owned(offsets), Dtype::Int64)?);
        let ragged = Ragged::new(values, offsets.ok_or(Error::Abandoned)?)?;
        Ok(Decoded::Ragged(ragged))
    }
}

impl Decoded {
    /// Its bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Decoded::Rows(rows) => rows.len() * rows.row_bytes(),
            Decoded::Ragged(ragged) => {
                let values = ragged.values();
                values.len() * values.row_bytes() + (ragged.len() + 1) * 8
            }
        }
    }

    /// Copies samples, all of one shape, to `out`, one after the other.
    pub(super) fn gather(
        &self,
        indices: &[usize],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        match self {
            Decoded::Rows(rows) => rows.gather(indices, scratch, out),
            Decoded::Ragged(ragged) => ragged.gather(indices, scratch, out),
        }
    }

    /// Number of values of a sample.
    pub(super) fn rows_of(&self, index: usize) -> Result<usize> {
        match self {
            Decoded::Rows(_) => Ok(1),
            Decoded::Ragged(ragged) => Ok(ragged.range(index)?.len()),
        }
    }

    /// Number of values of each sample; None unless samples are several.
    pub(super) fn lengths(&self) -> Option<Box<[u32]>> {
        let Decoded::Ragged(ragged) = self else {
            return None;
        };
        let length = |index| {
            let length = u32::try_from(ragged.range(index)?.len());
            length.map_err(|_| Error::Abandoned)
        };
        let lengths = collect(ragged.len(), (0..ragged.len()).map(length));
        Some(lengths.ok()?.into_boxed_slice())
    }

    /// Bytes of a sample that is text or bytes.
    pub(super) fn letters(&self, index: usize) -> Result<&[u8]> {
        match self {
            Decoded::Rows(_) => Ok(&[]),
            Decoded::Ragged(ragged) => ragged.block(index),
        }
    }
}
