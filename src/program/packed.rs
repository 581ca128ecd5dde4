//! Batches whose leaves are packed into rows together.
//!
//! Owns when rows are planned: before the batch is made, where all shapes are known, and then each piece is
//! written at its place; or once its samples are there. The first leaf's lengths decide, those of the
//! others must be the same.

use super::ruled::of_sample;
use super::run::Run;
use super::spans::Part;
use crate::collate::{Dense, Field, How, Packing, Rows, Shape, Slot};
use crate::error::{Error, Result};
use crate::order::Indices;

impl Run {
    /// Makes the slots of all leaves, where they are packed.
    pub(super) fn packed(&self, indices: &Indices) -> Option<Result<Vec<Part>>> {
        self.packing()?;
        let leaves = 0..self.program.leaves.len();
        let shapes = leaves.clone().map(|place| self.shapes(place, indices));
        let (shapes, spans): (Vec<_>, Vec<_>) = match shapes.collect::<Result<Vec<_>>>() {
            Ok(found) => found.into_iter().unzip(),
            Err(error) => return Some(Ok(parts(self.refused(error)))),
        };
        let Some(shapes) = shapes.into_iter().collect::<Option<Vec<_>>>() else {
            let slots = leaves.map(|place| self.apart(place, indices));
            return Some(slots.collect::<Result<_>>().map(parts));
        };
        let slots = self.rows(shapes, indices).into_iter().zip(spans);
        Some(Ok(slots
            .map(|(slot, spans)| Part { slot, spans })
            .collect()))
    }

    /// Packs samples that stayed by themselves because their shapes were not known.
    pub(super) fn pack(&self, fields: Vec<Field>, indices: &Indices) -> Result<Vec<Field>> {
        let samples = fields.into_iter().map(|field| match field {
            Field::Apart(samples) => samples.into_iter().map(Field::dense).collect(),
            _ => None,
        });
        let samples: Option<Vec<Vec<Dense>>> = samples.collect();
        let samples = samples.ok_or(Error::Abandoned)?; // not seen: all or none of them are apart
        let shapes = samples
            .iter()
            .map(|leaf| leaf.iter().map(Dense::sizes).collect());
        let slots = self.rows(shapes.collect(), indices).into_iter();
        let leaves = slots.zip(&samples).zip(&self.program.leaves);
        leaves
            .map(|((slot, samples), leaf)| slot.filled(samples, leaf.dtype()))
            .collect()
    }

    /// Whether samples are to be packed that stayed by themselves.
    pub(super) fn is_to_pack(&self, fields: &[Field]) -> bool {
        self.packing().is_some() && matches!(fields.first(), Some(Field::Apart(_)))
    }

    /// Makes the slots of samples of these shapes, by leaf; errors come once the samples are made.
    fn rows(&self, shapes: Vec<Vec<Shape>>, indices: &Indices) -> Vec<Slot> {
        let Some((packing, first)) = self.packing().zip(shapes.first()) else {
            return Vec::new(); // not seen: whoever calls has rows to plan
        };
        let rules = &self.program.rules;
        let rows = match Rows::plan(&rules[0], packing, first) {
            Ok(rows) => rows,
            Err(error) => return self.refused(of_sample(error, indices)),
        };
        let leaves = shapes.into_iter().zip(rules).zip(&self.program.leaves);
        let slots = leaves.map(|((shapes, rule), leaf)| match &rule.how {
            How::Pack(packs) => rule.pack(packs, &rows, leaf.dtype(), shapes),
            _ => Err(Error::Abandoned), // not seen: a program packs all of its leaves or none
        });
        slots
            .map(|slot| slot.unwrap_or_else(|error| Slot::refused(of_sample(error, indices))))
            .collect()
    }

    /// Makes the slots of a batch that cannot be; the first one's error is told.
    fn refused(&self, error: Error) -> Vec<Slot> {
        let others = (1..self.program.leaves.len()).map(|_| Error::Abandoned);
        let errors = std::iter::once(error).chain(others);
        errors.map(Slot::refused).collect()
    }

    fn packing(&self) -> Option<&Packing> {
        match &self.program.rules.first()?.how {
            How::Pack(packs) => packs.packing.as_ref(),
            _ => None,
        }
    }
}

/// Slots of samples of which nobody knows where they lie.
fn parts(slots: Vec<Slot>) -> Vec<Part> {
    slots.into_iter().map(Part::from).collect()
}
