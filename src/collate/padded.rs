//! A padded field while it is being made: any thread writes a sample to its row.
//!
//! Invariant: the thread that writes a sample also writes the padding around it and its row of the mask, so
//! each byte of the field is written once.

use std::ops::Range;

use super::array::{Array, Side, fill, packed_strides};
use super::rule::Padding;
use super::sample_mut::{Memory, SampleMut};
use super::{Dense, Element, Layout, Mismatch, Shape, bytes_of, int64s, sizes};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, Lease, RowsMut, Writer, lease};

/// Padded samples, and what goes with them.
#[derive(Debug)]
pub struct PaddedField {
    /// `(B, ...)`.
    pub values: Dense,
    /// int64 `(B,)`, or `(B, k)` with k padded dimensions.
    pub lengths: Option<Dense>,
    /// 1 for elements of a sample, 0 for padding.
    pub mask: Option<Dense>,
    /// The labels, for fields of tokens that have them.
    pub labels: Option<Dense>,
    /// Sum of the lengths; with several padded dimensions, of their products.
    pub tokens: usize,
}

/// The memory of a padded field, while threads write to it.
#[derive(Debug)]
pub(super) struct Padded {
    writer: Writer,
    layout: Layout,
    side: Side,
    element: Element,
    dtype: Dtype,
    shapes: Vec<Shape>,
    /// True if every sample is as large as its row.
    full: bool,
    /// True if every sample is contiguous in its row.
    whole: bool,
    lengths: bool,
    mask: Option<Masks>,
}

#[derive(Debug)]
struct Masks {
    writer: Writer,
    shape: Shape,
    dtype: Dtype,
}

impl Padded {
    pub(super) fn new(
        padding: &Padding,
        dtype: Dtype,
        shapes: Vec<Shape>,
        given: Vec<Destination>,
        to_error: impl Fn(Mismatch) -> Error,
    ) -> Result<Padded> {
        if shapes.first().is_some_and(Shape::is_empty) {
            let shape = Vec::new();
            return Err(to_error(Mismatch::Dim { dim: 0, shape }));
        }
        let layout = padding.pad.layout(shapes.iter().map(Shape::as_slice));
        let layout = layout.map_err(&to_error)?;
        let element = padding.pad.fill.element(dtype).map_err(&to_error)?;
        let mut given = given.into_iter();
        let values = writer(shapes.len(), &layout.shape, dtype, given.next())?;
        let mask = padding.mask.map(|mask| -> Result<Masks> {
            let shape = layout.mask_shape(mask.rank);
            let shape = shape.map_err(|least| to_error(Mismatch::Mask { least }))?;
            let writer = writer(shapes.len(), &shape, mask.dtype, given.next())?;
            let dtype = mask.dtype;
            Ok(Masks {
                writer,
                shape,
                dtype,
            })
        });
        Ok(Padded {
            writer: values,
            whole: shapes.iter().all(|shape| is_whole(shape, &layout)),
            full: layout.kept == layout.shape && shapes.iter().all(|shape| *shape == layout.shape),
            side: padding.pad.side,
            element,
            dtype,
            lengths: padding.lengths,
            mask: mask.transpose()?,
            layout,
            shapes,
        })
    }

    /// Returns the shape of the sample at `position`.
    pub(super) fn shape(&self, position: usize) -> &[usize] {
        &self.shapes[position]
    }

    /// Claims neighbouring rows for samples that fill them; None if some sample does not.
    pub(super) fn block(&self, first: usize, samples: usize) -> Result<Option<RowsMut<'_>>> {
        if !self.full {
            return Ok(None);
        }
        let range = first..first + samples;
        self.write_masks(range.clone())?;
        self.writer.rows(range).map(Some)
    }

    /// Calls `write` for neighbouring samples with the memory of each, and writes the padding around them;
    /// returns false if some sample is not contiguous in its row.
    pub(super) fn write(
        &self,
        first: usize,
        samples: usize,
        mut write: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        if !self.whole {
            return Ok(false);
        }
        let range = first..first + samples;
        self.write_masks(range.clone())?;
        let mut rows = self.writer.rows(range.clone())?;
        let bytes = rows.len() / samples.max(1);
        let places = rows.chunks_exact_mut(bytes.max(1));
        for (at, (place, shape)) in places.zip(&self.shapes[range]).enumerate() {
            let body = self.pad(shape, place);
            write(at, &mut place[body])?;
        }
        Ok(true)
    }

    /// Writes the padding around a sample that is contiguous in its row; returns the sample's byte range.
    fn pad(&self, shape: &[usize], place: &mut [u8]) -> Range<usize> {
        let rows = self.layout.shape[0];
        let inner = place.len() / rows.max(1);
        let before = match self.side {
            Side::Left => rows - shape[0],
            Side::Right => 0,
        };
        let body = before * inner..(before + shape[0]) * inner;
        let element = &self.element[..self.dtype.itemsize()];
        fill(element, &mut place[..body.start]);
        fill(element, &mut place[body.end..]);
        body
    }

    /// Claims the row of a sample and writes the padding around it.
    pub(super) fn sample_mut(&self, position: usize) -> Result<SampleMut<'_>> {
        self.write_masks(position..position + 1)?;
        let mut row = self.writer.rows(position..position + 1)?;
        let shape = &self.shapes[position];
        if !is_whole(shape, &self.layout) {
            let memory = lease(bytes_of(shape, self.dtype.itemsize()))?;
            return Ok(SampleMut(Memory::Staged(self, position, row, memory)));
        }
        let body = self.pad(shape, &mut row);
        Ok(SampleMut(Memory::Row(row, body)))
    }

    /// Copies a sample, in C order, to its row, as far as it is kept.
    pub(super) fn place(&self, position: usize, sample: &Lease, out: &mut [u8]) {
        let shape = &self.shapes[position];
        let itemsize = self.dtype.itemsize();
        let array = Array {
            bytes: sample,
            first: 0,
            shape,
            strides: &packed_strides(shape, itemsize),
        };
        let element = &self.element[..itemsize];
        let samples = std::iter::once(array);
        self.layout.write(samples, self.side, element, out);
    }

    fn write_masks(&self, range: Range<usize>) -> Result<()> {
        let Some(mask) = &self.mask else {
            return Ok(());
        };
        let mut rows = mask.writer.rows(range.clone())?;
        let shapes = self.shapes[range].iter().map(Shape::as_slice);
        self.layout
            .write_masks(shapes, self.side, mask.dtype.itemsize(), &mut rows);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<PaddedField> {
        let samples = self.shapes.len();
        let kept = || {
            let shapes = self.shapes.iter();
            shapes.map(|shape| self.layout.lengths(shape))
        };
        let lengths = self
            .lengths
            .then(|| int64s(self.layout.lengths_shape(samples), kept().flatten()));
        let tokens = kept().map(Iterator::product::<usize>).sum();
        let lengths = lengths.transpose()?;
        let dense = |writer: Writer, shape: &[usize], dtype| Dense {
            memory: writer.finish(),
            shape: sizes(samples, shape),
            dtype,
        };
        Ok(PaddedField {
            mask: self
                .mask
                .map(|mask| dense(mask.writer, &mask.shape, mask.dtype)),
            values: dense(self.writer, &self.layout.shape, self.dtype),
            lengths,
            labels: None,
            tokens,
        })
    }
}

/// Returns true if a sample is contiguous in its row.
fn is_whole(shape: &[usize], layout: &Layout) -> bool {
    shape[0] <= layout.kept[0] && shape[1..] == layout.shape[1..]
}

/// Divides memory, given or leased, into `rows` rows of one shape.
fn writer(
    rows: usize,
    shape: &[usize],
    dtype: Dtype,
    given: Option<Destination>,
) -> Result<Writer> {
    let row = bytes_of(shape, dtype.itemsize());
    let memory = Destination::or_lease(given, row.saturating_mul(rows))?;
    Ok(Writer::new(memory, rows, row))
}

/// A token and its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The token to replace.
    pub token: i64,
    /// The label that replaces it.
    pub label: i64,
}

impl Labels {
    /// Makes the labels of int64 tokens; None for other dtypes.
    pub(super) fn of(self, tokens: &Dense) -> Result<Option<Dense>> {
        if tokens.dtype != Dtype::Int64 {
            return Ok(None);
        }
        let (token, label) = (self.token.to_ne_bytes(), self.label.to_ne_bytes());
        let source = tokens.memory.bytes();
        let mut memory = lease(source.len())?;
        let places = memory.as_chunks_mut::<8>().0;
        for (place, found) in places.iter_mut().zip(source.as_chunks::<8>().0) {
            *place = if *found == token { label } else { *found };
        }
        Ok(Some(Dense {
            memory: memory.into(),
            shape: tokens.shape.clone(),
            dtype: tokens.dtype,
        }))
    }
}
