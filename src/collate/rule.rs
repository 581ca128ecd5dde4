//! The collation rule of one field.
//!
//! Owns the choice of the method, and the field's name for errors. Refuses to know where samples come from:
//! the shapes of a batch are passed in before it is made, or once its samples are there.

use super::pack::check_aligned;
use super::packed::{Packed, Packs, Rows};
use super::padded::Padded;
use super::ragged::Joined;
use super::{Dense, Field, Labels, Mismatch, Pad, Shape, Slot, sizes};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype};
use crate::sync::Arc;

/// The rule by which one field is collated; by default it is stacked, and its errors do not name it.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The field, as Python writes its name.
    pub field: Box<str>,
    /// The method.
    pub method: Method,
    /// True if samples are Python lists: empty ones have no element type and no inner sizes.
    pub lists: bool,
    /// The element type of the batch, if it differs from the samples'.
    pub to: Option<Dtype>,
    /// The leaf with which its samples must agree in length.
    pub like: Option<usize>,
    /// The labels that are made of it.
    pub labels: Option<Labels>,
}

/// The collation method of a field.
#[derive(Clone, Debug, Default)]
pub enum Method {
    /// Samples are stacked, as torch's `default_collate` does.
    #[default]
    Stack,
    /// Samples are padded to one shape.
    Pad(Padding),
    /// Samples are joined along the first dimension.
    Join,
    /// Samples are packed into rows, side by side.
    Pack(Box<Packs>),
    /// Each sample becomes a field of its own.
    Separate,
}

/// The padding of a field, and its extra outputs.
#[derive(Clone, Debug)]
pub struct Padding {
    /// The shape, the side and the value of the padding.
    pub pad: Pad,
    /// True to add the lengths.
    pub lengths: bool,
    /// The mask, if one is added.
    pub mask: Option<Mask>,
}

/// The form of a mask.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// Number of its dimensions, with that of the batch; None for as few as possible.
    pub rank: Option<usize>,
    /// [`Dtype::Bool`] or [`Dtype::Int64`].
    pub dtype: Dtype,
}

impl Padding {
    /// Returns shapes and types of the tensors that `samples` samples, with shapes between these, are written
    /// to: the field, and its mask. None if the samples do not fit together.
    pub fn tensors(
        &self,
        dtype: Dtype,
        samples: usize,
        shapes: &[Shape],
    ) -> Option<Vec<(Shape, Dtype)>> {
        let layout = self.pad.layout(shapes.iter().map(Shape::as_slice)).ok()?;
        let of_batch = |shape: &[usize]| sizes(samples, shape);
        let mut tensors = vec![(of_batch(&layout.shape), dtype)];
        if let Some(mask) = self.mask {
            tensors.push((of_batch(&layout.mask_shape(mask.rank).ok()?), mask.dtype));
        }
        Some(tensors)
    }
}

impl Rule {
    /// Completes a finished field: converts its element type, adds its labels.
    pub fn completed(&self, field: Field) -> Result<Field> {
        let field = match self.to {
            Some(to) => field.cast(to)?,
            None => field,
        };
        match (self.labels, field) {
            (Some(labels), Field::Padded(mut padded)) => {
                padded.labels = labels.of(&padded.values)?;
                Ok(Field::Padded(padded))
            }
            (_, field) => Ok(field),
        }
    }

    /// Checks that padded samples are as long as those of another field, `tokens`.
    pub fn check_like(&self, field: &Field, tokens: &Field) -> Result<()> {
        let (Field::Padded(own), Field::Padded(tokens)) = (field, tokens) else {
            return Ok(());
        };
        let (Some(own), Some(tokens)) = (&own.lengths, &tokens.lengths) else {
            return Ok(());
        };
        let (own, tokens) = (own.int64s(), tokens.int64s());
        check_aligned(&own, &tokens).map_err(|wrong| self.error(wrong))
    }

    /// Makes an error with the field's name.
    pub(super) fn error(&self, mismatch: Mismatch) -> Error {
        mismatch.of_field(&self.field)
    }

    /// Returns the dtype that samples of these shapes have together: int64 for lists without any number.
    /// Their shapes are then cut after the first 0.
    pub fn common_dtype(&self, dtype: Dtype, shapes: &mut [Shape]) -> Dtype {
        if !self.lists || !shapes.iter().all(|shape| shape.contains(&0)) {
            return dtype;
        }
        for shape in shapes {
            let last = shape.iter().position(|&size| size == 0);
            shape.truncate(last.map_or(0, |last| last + 1));
        }
        Dtype::Int64
    }

    /// Makes the slot for samples of these shapes, by a method that pads or joins them. Padded ones are
    /// written to the memory `given`, if that has the sizes of [`Padding::tensors`].
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`]: they do not fit together; [`Error::Memory`].
    pub fn slot(
        &self,
        dtype: Dtype,
        mut shapes: Vec<Shape>,
        given: Vec<Destination>,
    ) -> Result<Slot> {
        let dtype = self.common_dtype(dtype, &mut shapes);
        let to_error = |mismatch| self.error(mismatch);
        match &self.method {
            Method::Pad(padding) => {
                let padded = Padded::new(padding, dtype, shapes, given, to_error)?;
                Ok(Slot::padded(padded))
            }
            _ => Ok(Slot::joined(Joined::new(dtype, shapes, to_error)?)),
        }
    }

    /// Makes the slot for samples of these shapes, which are packed into `rows`.
    pub fn pack(
        &self,
        packs: &Packs,
        rows: &Arc<Rows>,
        dtype: Dtype,
        shapes: Vec<Shape>,
    ) -> Result<Slot> {
        Packed::new(self, packs, rows, dtype, shapes).map(Slot::packed)
    }

    /// Collates samples that were kept because their shapes were not known.
    pub fn join(&self, samples: &[Dense], dtype: Dtype) -> Result<Field> {
        let shapes = samples.iter().map(|sample| sample.shape.clone()).collect();
        self.slot(dtype, shapes, Vec::new())?.filled(samples, dtype)
    }
}
