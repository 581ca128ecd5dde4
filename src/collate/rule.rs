//! What becomes of the samples of one field.
//!
//! Owns the choice and the field's name, for errors. Refuses to know where samples come from: the
//! shapes of a batch are told before it is made, or once its samples are there.

use super::joined::Joined;
use super::padded::Padded;
use super::{Dense, Field, Pad, Slot};
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// What becomes of one field.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The field, as Python writes its name.
    pub field: Box<str>,
    /// What becomes of it.
    pub how: How,
    /// Whether samples are Python's lists, whose emptiness has no element type and no inner sizes.
    pub lists: bool,
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

impl Rule {
    /// The rule of a field that is stacked, whose errors have other names.
    pub fn stack() -> Rule {
        Rule {
            field: Box::default(),
            how: How::Stack,
            lists: false,
        }
    }

    /// Returns the dtype that samples of these shapes have together: of lists without a number, that of
    /// whole ones. Their shapes then end where the lists do.
    pub fn seen(&self, dtype: Dtype, shapes: &mut [Vec<usize>]) -> Dtype {
        if !self.lists || !shapes.iter().all(|shape| shape.contains(&0)) {
            return dtype;
        }
        for shape in shapes {
            let last = shape.iter().position(|&size| size == 0);
            shape.truncate(last.map_or(0, |last| last + 1));
        }
        Dtype::Int64
    }

    /// Makes the slot of samples of these shapes, of a rule that joins samples of different ones.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`]: they do not fit together; [`Error::Memory`].
    pub fn slot(&self, dtype: Dtype, mut shapes: Vec<Vec<usize>>) -> Result<Slot> {
        let dtype = self.seen(dtype, &mut shapes);
        let named = |mismatch| Error::Mismatch {
            field: self.field.clone(),
            mismatch,
        };
        match &self.how {
            How::Pad(padding) => Ok(Slot::padded(Padded::new(padding, dtype, shapes, named)?)),
            _ => Ok(Slot::joined(Joined::new(dtype, shapes, named)?)),
        }
    }

    /// Joins samples that were kept apart because their shapes were not known.
    pub fn join(&self, samples: &[Dense], dtype: Dtype) -> Result<Field> {
        let shapes = samples.iter().map(|sample| sample.shape.clone()).collect();
        let slot = self.slot(dtype, shapes)?;
        for (position, sample) in samples.iter().enumerate() {
            let mut seat = slot.seat(position, &sample.shape, dtype.itemsize())?;
            seat.copy_from_slice(sample.memory.bytes());
            seat.leave();
        }
        slot.finish(true)
    }
}
