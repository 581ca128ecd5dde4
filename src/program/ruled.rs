//! Fields that are not stacked: padded, joined, packed, or separate samples.
//!
//! Owns the time at which shapes are known: before the batch is made, so that each sample is written in
//! place; or once its samples are there, which are separate until then. Leaves are packed into rows together: the
//! lengths of the first decide, and those of the others must agree.

use super::copying;
use super::run::{FieldSlot, Run};
use crate::collate::{Dense, Field, Method, Packing, Rows, Shape, Slot};
use crate::column::{Kind, holder};
use crate::error::{Error, Fault, Result};
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
    fn separate(&self, number: usize, indices: &Indices) -> Result<Slot> {
        let leaf = &self.program.leaves[number];
        let slots = (0..indices.len()).map(|position| {
            let index = self.program.resolve(indices.get(position))?;
            if leaf.layout().kind == Kind::Lists {
                return copying::slot(&[holder(&**leaf, index)?], self.program.lists[number]);
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

    /// Adds the batch's indices and place to an error of its collation, if Python collates the batch instead.
    pub(super) fn declined(&self, error: Error, indices: &Indices, first: u64) -> Error {
        let is_unsure = match &error {
            Error::Leaf { source, .. } => matches!(**source, Error::UnknownField),
            error => matches!(error, Error::UnknownField),
        };
        if self.program.falls_back || is_unsure {
            error.declined(indices, first)
        } else {
            error
        }
    }
}

impl Error {
    /// Adds the batch's indices and place to the error of a sample, if it is one that Python may make.
    pub(super) fn of_batch(self, indices: &Indices, first: u64) -> Error {
        match &self {
            Error::Sample { source, .. } if source.fault() == Fault::Unsupported => {
                self.declined(indices, first)
            }
            _ => self,
        }
    }

    fn declined(self, indices: &Indices, first: u64) -> Error {
        Error::Declined {
            indices: (0..indices.len()).map(|at| indices.get(at)).collect(),
            first,
            source: Box::new(self),
        }
    }
}

/// Adds the dataset index of the sample that an error is about.
fn of_sample(error: Error, indices: &Indices) -> Error {
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

impl Run {
    /// Makes the slots of all leaves, if they are packed.
    pub(super) fn packed(&self, indices: &Indices) -> Option<Result<Vec<FieldSlot>>> {
        self.packing()?;
        let leaves = 0..self.program.leaves.len();
        let shapes = leaves
            .clone()
            .map(|number| self.program.shapes(number, indices));
        let (shapes, spans): (Vec<_>, Vec<_>) = match shapes.collect::<Result<Vec<_>>>() {
            Ok(found) => found.into_iter().unzip(),
            Err(error) => return Some(Ok(without_spans(self.refused(error)))),
        };
        let Some(shapes) = shapes.into_iter().collect::<Option<Vec<_>>>() else {
            let slots = leaves.map(|number| self.separate(number, indices));
            return Some(slots.collect::<Result<_>>().map(without_spans));
        };
        let slots = self.rows(shapes, indices).into_iter().zip(spans);
        Some(Ok(slots
            .map(|(slot, spans)| FieldSlot { slot, spans })
            .collect()))
    }

    /// Packs samples that were made separately because their shapes were not known.
    fn pack(&self, fields: Vec<Field>, indices: &Indices) -> Result<Vec<Field>> {
        let samples = fields.into_iter().map(|field| match field {
            Field::Separate(samples) => samples.into_iter().map(Field::dense).collect(),
            _ => None,
        });
        let samples: Option<Vec<Vec<Dense>>> = samples.collect();
        let samples = samples.ok_or(Error::Abandoned)?; // unreachable: all leaves are separate or none
        let shapes = samples
            .iter()
            .map(|leaf| leaf.iter().map(|sample| sample.shape.clone()).collect());
        let slots = self.rows(shapes.collect(), indices).into_iter();
        let leaves = slots.zip(&samples).zip(&self.program.leaves);
        leaves
            .map(|((slot, samples), leaf)| slot.filled(samples, leaf.layout().dtype))
            .collect()
    }

    /// Returns true if separate samples remain to be packed.
    fn is_to_pack(&self, fields: &[Field]) -> bool {
        self.packing().is_some() && matches!(fields.first(), Some(Field::Separate(_)))
    }

    /// Makes the slots for samples of these shapes, by leaf; errors come out once the samples are made.
    fn rows(&self, shapes: Vec<Vec<Shape>>, indices: &Indices) -> Vec<Slot> {
        let Some((packing, first)) = self.packing().zip(shapes.first()) else {
            return Vec::new(); // unreachable: the callers have rows to plan
        };
        let rules = &self.program.rules;
        let rows = match Rows::plan(&rules[0], packing, first) {
            Ok(rows) => rows,
            Err(error) => return self.refused(of_sample(error, indices)),
        };
        let leaves = shapes.into_iter().zip(rules).zip(&self.program.leaves);
        let slots = leaves.map(|((shapes, rule), leaf)| match &rule.method {
            Method::Pack(packs) => rule.pack(packs, &rows, leaf.layout().dtype, shapes),
            _ => Err(Error::Abandoned), // unreachable: a program packs all of its leaves or none
        });
        slots
            .map(|slot| slot.unwrap_or_else(|error| Slot::refused(of_sample(error, indices))))
            .collect()
    }

    /// Makes the slots of a batch that cannot be packed; the first one carries the error.
    fn refused(&self, error: Error) -> Vec<Slot> {
        let others = (1..self.program.leaves.len()).map(|_| Error::Abandoned);
        let errors = std::iter::once(error).chain(others);
        errors.map(Slot::refused).collect()
    }

    fn packing(&self) -> Option<&Packing> {
        match &self.program.rules.first()?.method {
            Method::Pack(packs) => packs.packing.as_ref(),
            _ => None,
        }
    }
}

/// Wraps slots of samples whose spans are unknown.
fn without_spans(slots: Vec<Slot>) -> Vec<FieldSlot> {
    slots.into_iter().map(FieldSlot::from).collect()
}
