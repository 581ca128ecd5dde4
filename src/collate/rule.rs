//! What becomes of the samples of one field.
//!
//! Owns the choice and the field's name, for errors. Refuses to know where samples come from: the
//! shapes of a batch are told before it is made, or once its samples are there.

use super::joined::Joined;
use super::packed::{Packed, Packs, Rows};
use super::padded::Padded;
use super::{Dense, Field, Labels, Mismatch, Pad, Shape, Slot, sizes};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype};

/// What becomes of one field.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The field, as Python writes its name.
    pub field: Box<str>,
    /// What becomes of it.
    pub how: How,
    /// Whether samples are Python's lists, whose emptiness has no element type and no inner sizes.
    pub lists: bool,
    /// The element type of the batch, where it is not the samples'.
    pub to: Option<Dtype>,
    /// The leaf whose lengths its samples must have.
    pub like: Option<usize>,
    /// The labels that are made of it.
    pub labels: Option<Labels>,
}

/// What becomes of a field.
#[derive(Clone, Debug)]
pub enum How {
    /// Its samples are stacked, as torch's `default_collate` does.
    Stack,
    /// They are padded to one shape.
    Pad(Padding),
    /// They lie one after the other.
    Flat,
    /// They are put into rows, side by side.
    Pack(Box<Packs>),
    /// Each stays by itself.
    Apart,
}

/// How a field is padded, and what is told of it.
#[derive(Clone, Debug)]
pub struct Padding {
    /// The shape, the side and the value of the padding.
    pub pad: Pad,
    /// Whether lengths are made.
    pub lengths: bool,
    /// The mask, if one is made.
    pub mask: Option<Mask>,
}

/// How a mask looks.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// Its dimensions, with that of the batch; None for no more than are needed.
    pub rank: Option<usize>,
    /// [`Dtype::Bool`] or [`Dtype::Int64`].
    pub dtype: Dtype,
}

impl Padding {
    /// Returns shapes and types of the tensors that so many samples, between these shapes, are written to: the
    /// field, and its mask. None if they do not fit together.
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
    /// The rule of a field that is stacked, whose errors have other names.
    pub fn stack() -> Rule {
        Rule {
            field: Box::default(),
            how: How::Stack,
            lists: false,
            to: None,
            like: None,
            labels: None,
        }
    }

    /// Does to a finished field what is left to do: its element type, its labels.
    pub fn completed(&self, field: Field) -> Result<Field> {
        let field = match self.to {
            Some(to) => field.retyped(to)?,
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
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`]: one is not.
    pub fn check_like(&self, field: &Field, tokens: &Field) -> Result<()> {
        let (Field::Padded(own), Field::Padded(tokens)) = (field, tokens) else {
            return Ok(());
        };
        let (Some(own), Some(tokens)) = (&own.lengths, &tokens.lengths) else {
            return Ok(());
        };
        let (own, tokens) = (own.longs(), tokens.longs());
        match (0..own.len()).find(|&at| tokens.get(at) != Some(&own[at])) {
            None => Ok(()),
            Some(position) => Err(self.named(Mismatch::Unaligned {
                position,
                len: own[position],
                tokens: tokens.get(position).copied().unwrap_or(0),
            })),
        }
    }

    /// Names the field of an error.
    pub(super) fn named(&self, mismatch: Mismatch) -> Error {
        Error::Mismatch {
            field: self.field.clone(),
            mismatch,
        }
    }

    /// Returns the dtype that samples of these shapes have together: of lists without a number, that of
    /// whole ones. Their shapes then end where the lists do.
    pub fn seen(&self, dtype: Dtype, shapes: &mut [Shape]) -> Dtype {
        if !self.lists || !shapes.iter().all(|shape| shape.contains(&0)) {
            return dtype;
        }
        for shape in shapes {
            let last = shape.iter().position(|&size| size == 0);
            shape.truncate(last.map_or(0, |last| last + 1));
        }
        Dtype::Int64
    }

    /// Makes the slot of samples of these shapes, of a rule that joins samples of different ones. Padded
    /// ones are written to the memory `given`, if that has the sizes of [`Padding::tensors`].
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
        let dtype = self.seen(dtype, &mut shapes);
        let named = |mismatch| self.named(mismatch);
        match &self.how {
            How::Pad(padding) => {
                let padded = Padded::new(padding, dtype, shapes, given, named)?;
                Ok(Slot::padded(padded))
            }
            _ => Ok(Slot::joined(Joined::new(dtype, shapes, named)?)),
        }
    }

    /// Makes the slot of samples of these shapes, of a rule that packs them into `rows`.
    ///
    /// # Errors
    ///
    /// As of [`Rule::slot`].
    pub fn pack(
        &self,
        packs: &Packs,
        rows: &Rows,
        dtype: Dtype,
        shapes: Vec<Shape>,
    ) -> Result<Slot> {
        Packed::new(self, packs, rows, dtype, shapes).map(Slot::packed)
    }

    /// Joins samples that were kept apart because their shapes were not known.
    pub fn join(&self, samples: &[Dense], dtype: Dtype) -> Result<Field> {
        let shapes = samples.iter().map(Dense::sizes).collect();
        self.slot(dtype, shapes, Vec::new())?.filled(samples, dtype)
    }
}
