//! Samples of different lengths, joined in one array, with the offsets between them.

use super::array::{Array, copy};
use super::sample_mut::{Memory, SampleMut};
use super::{Dense, Mismatch, Shape, bytes_of, int64s, sizes};
use crate::error::{Error, Result};
use crate::memory::{Dtype, Writer, lease};

/// The shape of the joined values, and the offset of each sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaggedLayout {
    /// `(sum of lengths, ...)`.
    pub shape: Shape,
    /// One more than there are samples, starting with 0.
    pub offsets: Vec<usize>,
}

impl RaggedLayout {
    /// Returns the layout for samples of these shapes, which may differ only in the first dimension.
    pub fn of<'a>(
        shapes: impl Iterator<Item = &'a [usize]>,
    ) -> std::result::Result<RaggedLayout, Mismatch> {
        let mut first: Option<&[usize]> = None;
        let mut offsets = vec![0];
        let mut end = 0_usize;
        for (position, shape) in shapes.enumerate() {
            let first = *first.get_or_insert(shape);
            if shape.len() != first.len() {
                return Err(Mismatch::Rank {
                    position,
                    shape: shape.to_vec(),
                    first: first.to_vec(),
                });
            }
            let Some(&len) = shape.first() else {
                return Err(Mismatch::Dim {
                    dim: 0,
                    shape: Vec::new(),
                });
            };
            if let Some(dim) = (1..shape.len()).find(|&dim| shape[dim] != first[dim]) {
                return Err(Mismatch::Size {
                    position,
                    dim,
                    shape: shape.to_vec(),
                    first: first.to_vec(),
                });
            }
            end = end.saturating_add(len); // saturated sizes fail in the allocation
            offsets.push(end);
        }
        let inner = first.unwrap_or_default().iter().skip(1).copied();
        let shape = std::iter::once(end).chain(inner).collect();
        Ok(RaggedLayout { shape, offsets })
    }

    /// Returns the smallest and the largest length; zeros without samples.
    pub fn extremes(&self) -> (usize, usize) {
        let lengths = self.offsets.windows(2).map(|pair| pair[1] - pair[0]);
        let least = lengths.clone().min().unwrap_or(0);
        (least, lengths.max().unwrap_or(0))
    }

    /// Writes the values of the samples.
    pub fn write<'a>(
        &self,
        samples: impl Iterator<Item = Array<'a>>,
        itemsize: usize,
        mut out: &mut [u8],
    ) {
        for sample in samples {
            let bytes = sample.shape.iter().product::<usize>() * itemsize;
            let (place, rest) = std::mem::take(&mut out).split_at_mut(bytes);
            copy(sample, itemsize, place);
            out = rest;
        }
    }
}

/// Samples joined along the first dimension.
#[derive(Debug)]
pub struct JoinedField {
    /// `(sum of lengths, ...)`.
    pub values: Dense,
    /// int64 `(B + 1,)`.
    pub offsets: Dense,
    /// The smallest and the largest length.
    pub extremes: (usize, usize),
}

/// The memory of a joined field, while threads write to it.
#[derive(Debug)]
pub(super) struct Joined {
    writer: Writer,
    flat: RaggedLayout,
    dtype: Dtype,
    shapes: Vec<Shape>,
}

impl Joined {
    pub(super) fn new(
        dtype: Dtype,
        shapes: Vec<Shape>,
        to_error: impl Fn(Mismatch) -> Error,
    ) -> Result<Joined> {
        let flat = RaggedLayout::of(shapes.iter().map(Shape::as_slice)).map_err(to_error)?;
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

    /// Returns the shape of the sample at `position`.
    pub(super) fn shape(&self, position: usize) -> &[usize] {
        &self.shapes[position]
    }

    /// Claims the rows of a sample.
    pub(super) fn sample_mut(&self, position: usize) -> Result<SampleMut<'_>> {
        let range = self.flat.offsets[position]..self.flat.offsets[position + 1];
        let rows = self.writer.rows(range);
        let rows = rows.map_err(|_| Error::WrittenTwice { position })?;
        let all = 0..rows.len();
        Ok(SampleMut(Memory::Row(rows, all)))
    }

    pub(super) fn finish(self) -> Result<JoinedField> {
        let offsets = self.flat.offsets.iter().copied();
        Ok(JoinedField {
            offsets: int64s(sizes(self.flat.offsets.len(), &[]), offsets)?,
            extremes: self.flat.extremes(),
            values: Dense {
                memory: self.writer.finish(),
                shape: self.flat.shape,
                dtype: self.dtype,
            },
        })
    }
}
