//! Batches whose leaves are packed into rows together.
//!
//! Owns the time of planning: before the batch is made, if all shapes are known, so that each piece is
//! written in place; otherwise once its samples are there. The lengths of the first leaf decide; those of the
//! others must agree.

use super::ruled::of_sample;
use super::run::{FieldSlot, Run};
use crate::collate::{Dense, Field, Method, Packing, Rows, Shape, Slot};
use crate::error::{Error, Result};
use crate::order::Indices;

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
    pub(super) fn pack(&self, fields: Vec<Field>, indices: &Indices) -> Result<Vec<Field>> {
        let samples = fields.into_iter().map(|field| match field {
            Field::Separate(samples) => samples.into_iter().map(Field::dense).collect(),
            _ => None,
        });
        let samples: Option<Vec<Vec<Dense>>> = samples.collect();
        let samples = samples.ok_or(Error::Abandoned)?; // unreachable: all leaves are separate or none
        let shapes = samples
            .iter()
            .map(|leaf| leaf.iter().map(Dense::sizes).collect());
        let slots = self.rows(shapes.collect(), indices).into_iter();
        let leaves = slots.zip(&samples).zip(&self.program.leaves);
        leaves
            .map(|((slot, samples), leaf)| slot.filled(samples, leaf.layout().dtype))
            .collect()
    }

    /// Returns true if separate samples remain to be packed.
    pub(super) fn is_to_pack(&self, fields: &[Field]) -> bool {
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
