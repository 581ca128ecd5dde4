//! A field in the making whose samples are padded: each is written at its place, by any thread.
//!
//! Invariant: whoever takes the seat of a sample writes the padding around it and its row of the mask,
//! so that each byte of the field is written once.

use super::array::{Array, Side, fill};
use super::rule::Padding;
use super::seat::Seat;
use super::{Dense, Element, Layout, Mismatch, bytes_of, longs};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, Lease, RowsMut, Writer, lease};

/// Padded samples, and what is told of them.
#[derive(Debug)]
pub struct PaddedField {
    /// `(B, ...)`.
    pub values: Dense,
    /// int64 `(B,)`, or `(B, k)` of k padded dimensions.
    pub lengths: Option<Dense>,
    /// What is a sample's.
    pub mask: Option<Dense>,
    /// Its labels, where it is tokens that have them.
    pub labels: Option<Dense>,
    /// Sum of the lengths; of the products of several.
    pub tokens: usize,
}

/// Where padded samples meet.
#[derive(Debug)]
pub(super) struct Padded {
    writer: Writer,
    layout: Layout,
    side: Side,
    element: Element,
    dtype: Dtype,
    shapes: Vec<Vec<usize>>,
    /// Whether every sample is as large as its place.
    full: bool,
    lengths: bool,
    mask: Option<Masks>,
}

#[derive(Debug)]
struct Masks {
    writer: Writer,
    shape: Vec<usize>,
    dtype: Dtype,
}

impl Padded {
    pub(super) fn new(
        padding: &Padding,
        dtype: Dtype,
        shapes: Vec<Vec<usize>>,
        given: Vec<Destination>,
        named: impl Fn(Mismatch) -> Error,
    ) -> Result<Padded> {
        if shapes.first().is_some_and(Vec::is_empty) {
            let shape = Vec::new();
            return Err(named(Mismatch::Dim { dim: 0, shape }));
        }
        let layout = padding.pad.layout(shapes.iter().map(Vec::as_slice));
        let layout = layout.map_err(&named)?;
        let element = padding.pad.element(dtype).map_err(&named)?;
        let mut given = given.into_iter();
        let values = writer(shapes.len(), &layout.shape, dtype, given.next())?;
        let mask = padding.mask.map(|mask| -> Result<Masks> {
            let shape = layout.mask_shape(mask.rank);
            let shape = shape.map_err(|least| named(Mismatch::Mask { least }))?;
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

    /// Shape of the sample at `position`.
    pub(super) fn shape(&self, position: usize) -> &[usize] {
        &self.shapes[position]
    }

    /// Claims neighbouring places for samples that fill them; None if some sample does not.
    pub(super) fn block(&self, first: usize, samples: usize) -> Result<Option<RowsMut<'_>>> {
        if !self.full {
            return Ok(None);
        }
        let range = first..first + samples;
        range
            .clone()
            .try_for_each(|position| self.write_mask(position))?;
        let rows = self.writer.rows(range);
        Ok(Some(rows.ok_or(Error::Twice { position: first })?))
    }

    /// Claims the place of a sample and writes the padding around it.
    pub(super) fn seat(&self, position: usize) -> Result<Seat<'_>> {
        self.write_mask(position)?;
        let row = self.writer.rows(position..position + 1);
        let mut row = row.ok_or(Error::Twice { position })?;
        let (shape, place) = (&self.shapes[position], &self.layout.shape);
        let is_whole = shape[0] <= self.layout.kept[0] && shape[1..] == place[1..];
        if !is_whole {
            let memory = lease(bytes_of(shape, self.dtype.itemsize()))?;
            return Ok(Seat::around(self, position, row, memory));
        }
        let inner = row.len() / place[0].max(1);
        let before = match self.side {
            Side::Left => place[0] - shape[0],
            Side::Right => 0,
        };
        let body = before * inner..(before + shape[0]) * inner;
        let element = &self.element[..self.dtype.itemsize()];
        fill(element, &mut row[..body.start]);
        fill(element, &mut row[body.end..]);
        Ok(Seat::within(row, body))
    }

    /// Writes a whole sample, in C order, to its place, as far as it is kept.
    pub(super) fn place(&self, position: usize, sample: &Lease, out: &mut [u8]) {
        let shape = &self.shapes[position];
        let itemsize = self.dtype.itemsize();
        let mut strides = vec![0; shape.len()];
        let mut packed = itemsize;
        for (stride, &size) in strides.iter_mut().zip(shape).rev() {
            *stride = packed.cast_signed();
            packed = packed.saturating_mul(size);
        }
        let array = Array {
            bytes: sample,
            first: 0,
            shape,
            strides: &strides,
        };
        let element = &self.element[..itemsize];
        let samples = std::iter::once(array);
        self.layout.write(samples, self.side, element, out);
    }

    fn write_mask(&self, position: usize) -> Result<()> {
        let Some(mask) = &self.mask else {
            return Ok(());
        };
        let row = mask.writer.rows(position..position + 1);
        let mut row = row.ok_or(Error::Twice { position })?;
        let shape = std::iter::once(self.shape(position));
        self.layout
            .write_masks(shape, self.side, mask.dtype.itemsize(), &mut row);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<PaddedField> {
        let samples = self.shapes.len();
        let sizes = || {
            let shapes = self.shapes.iter();
            shapes.map(|shape| self.layout.lengths(shape))
        };
        let lengths = self.lengths.then(|| {
            let shape = match self.layout.dims.len() {
                1 => vec![samples],
                dims => vec![samples, dims],
            };
            longs(shape, sizes().flatten())
        });
        let tokens = sizes().map(Iterator::product::<usize>).sum();
        let lengths = lengths.transpose()?;
        let dense = |writer: Writer, shape: &[usize], dtype| Dense {
            memory: writer.finish(),
            shape: [&[samples], shape].concat(),
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

/// Divides memory, given or leased, into `rows` places of a shape.
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
