//! Fields that are not stacked: padded, joined, or separate samples.
//!
//! Owns the time at which shapes are known: before the batch is made, so that each sample is written in
//! place; or once its samples are there, which are separate until then.

use super::run::{FieldSlot, Run};
use super::tree;
use crate::collate::{Dense, Field, Method, Slot};
use crate::column::{Kind, holder};
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};
use crate::order::Indices;

impl Run {
    /// Makes the slot of a leaf with a collation rule of its own.
    pub(super) fn ruled(
        &self,
        number: usize,
        indices: &Indices,
        given: Vec<Destination>,
    ) -> Result<FieldSlot> {
        let rule = &self.program.rules[number];
        let (shapes, spans) = match self.program.shapes(number, indices) {
            Ok(found) => found,
            Err(error) => return Ok(Slot::refused(error).into()),
        };
        let is_separate = matches!(rule.method, Method::Separate);
        if self.program.leaves[number].layout().kind == Kind::Lists && !is_separate {
            let are_arrays = shapes
                .as_ref()
                .is_some_and(|shapes| !shapes.iter().any(|shape| shape.contains(&0)));
            if !are_arrays {
                return Ok(Slot::refused(Error::UnknownField).into());
            }
        }
        match shapes {
            Some(shapes) if !is_separate => {
                let slot = rule.slot(self.program.leaves[number].layout().dtype, shapes, given);
                let slot = slot.unwrap_or_else(|error| Slot::refused(of_sample(error, indices)));
                Ok(FieldSlot { slot, spans })
            }
            _ => self.separate(number, indices).map(FieldSlot::from),
        }
    }

    /// Makes a slot for each sample.
    pub(super) fn separate(&self, number: usize, indices: &Indices) -> Result<Slot> {
        let leaf = &self.program.leaves[number];
        let slots = (0..indices.len()).map(|position| {
            let index = self.program.resolve(indices.get(position))?;
            if leaf.layout().kind == Kind::Lists {
                return tree::slot(&[holder(&**leaf, index)?], self.program.lists[number]);
            }
            let Some(shape) = leaf.shape(index)? else {
                return Ok(Slot::loose(1, leaf.layout().dtype));
            };
            let mut shapes = [shape];
            let dtype = self.program.rules[number].common_dtype(leaf.layout().dtype, &mut shapes);
            let [shape] = shapes;
            let elements = shape.iter().product::<usize>();
            let memory = Destination::Lease(lease(elements * dtype.itemsize())?);
            Ok(Slot::fixed(memory, 1, shape, dtype))
        });
        Ok(Slot::separate(slots.collect::<Result<_>>()?))
    }

    /// Collates samples that were made separately, unless they stay separate.
    pub(super) fn joined(
        &self,
        number: usize,
        samples: Vec<Field>,
        indices: &Indices,
    ) -> Result<Field> {
        let rule = &self.program.rules[number];
        if matches!(rule.method, Method::Separate | Method::Pack(_)) {
            return Ok(Field::Separate(samples));
        }
        let arrays = samples.into_iter().map(|sample| match sample {
            Field::Dense(dense) => Ok(dense),
            _ => Err(Error::Abandoned), // unreachable: lists are not joined
        });
        let arrays = arrays.collect::<Result<Vec<Dense>>>()?;
        let joined = rule.join(&arrays, self.program.leaves[number].layout().dtype);
        joined.map_err(|error| of_sample(error, indices))
    }

    /// Packs the fields of a batch if that is still to be done, and checks that their lengths agree.
    pub(super) fn check_together(
        &self,
        fields: Vec<Field>,
        indices: &Indices,
    ) -> Result<Vec<Field>> {
        if self.is_to_pack(&fields) {
            return self.pack(fields, indices);
        }
        if self.program.falls_back && fields.iter().any(is_unknown) {
            return Err(Error::UnknownField);
        }
        for (rule, field) in self.program.rules.iter().zip(&fields) {
            if let Some(tokens) = rule.like.and_then(|like| fields.get(like)) {
                let checked = rule.check_like(field, tokens);
                checked.map_err(|error| of_sample(error, indices))?;
            }
        }
        Ok(fields)
    }

    /// Adds the batch's indices to an error, if Python collates the batch instead.
    pub(super) fn declined(&self, error: Error, indices: &Indices) -> Error {
        let is_unsure = match &error {
            Error::Leaf { source, .. } => matches!(**source, Error::UnknownField),
            error => matches!(error, Error::UnknownField),
        };
        if !self.program.falls_back && !is_unsure {
            return error;
        }
        Error::Declined {
            indices: (0..indices.len()).map(|at| indices.get(at)).collect(),
            source: Box::new(error),
        }
    }
}

/// Adds the dataset index of the sample that an error is about.
pub(super) fn of_sample(error: Error, indices: &Indices) -> Error {
    let position = match &error {
        Error::Mismatch { mismatch, .. } => mismatch.position(),
        _ => None,
    };
    match position {
        Some(position) => Error::OfSample {
            index: indices.get(position),
            source: Box::new(error),
        },
        None => error,
    }
}

/// Returns true if native code cannot know the field: one without numbers, so that no column tells its type,
/// or padded samples of several dimensions.
fn is_unknown(field: &Field) -> bool {
    match field {
        Field::Dense(dense) => dense.memory.is_empty(),
        Field::Padded(padded) => padded.values.memory.is_empty() || padded.values.shape.len() != 2,
        _ => false,
    }
}
