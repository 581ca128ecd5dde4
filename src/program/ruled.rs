//! Fields that are not stacked: padded, one after the other, or samples by themselves.
//!
//! Owns when the shapes of a batch are known: before it is made, and then each sample is written at its
//! place; or once its samples are there, which until then stay by themselves.

use super::kind::Kind;
use super::run::Run;
use super::spans::{Part, Spans};
use super::tree;
use crate::collate::{Dense, Field, How, Shape, Slot, sizes};
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};
use crate::order::Indices;

/// How many samples ahead memory is asked for.
const AHEAD: usize = 16;

impl Run {
    /// Makes the slot of a leaf that has a rule of its own.
    pub(super) fn ruled(
        &self,
        place: usize,
        indices: &Indices,
        given: Vec<Destination>,
    ) -> Result<Part> {
        let rule = &self.program.rules[place];
        let (shapes, spans) = match self.shapes(place, indices) {
            Ok(found) => found,
            Err(error) => return Ok(Slot::refused(error).into()),
        };
        let is_apart = matches!(rule.how, How::Apart);
        if self.program.leaves[place].kind() == Kind::Lists && !is_apart {
            let are_arrays = shapes
                .as_ref()
                .is_some_and(|shapes| !shapes.iter().any(|shape| shape.contains(&0)));
            if !are_arrays {
                return Ok(Slot::refused(Error::Unsure).into());
            }
        }
        match shapes {
            Some(shapes) if !is_apart => {
                let slot = rule.slot(self.program.leaves[place].dtype(), shapes, given);
                let slot = slot.unwrap_or_else(|error| Slot::refused(of_sample(error, indices)));
                Ok(Part { slot, spans })
            }
            _ => self.apart(place, indices).map(Part::from),
        }
    }

    /// The shape of each sample, and where it lies if that is known; None where one is not known yet, or is no
    /// array.
    pub(super) fn shapes(
        &self,
        place: usize,
        indices: &Indices,
    ) -> Result<(Option<Vec<Shape>>, Spans)> {
        let leaf = &self.program.leaves[place];
        if leaf.ragged().is_some()
            && let Some(spans) = self.resolved(indices, |indices| leaf.spans(indices))?
        {
            let row_shape = leaf.row_shape();
            let shapes = spans.iter().map(|span| sizes(span.len(), row_shape));
            return Ok((Some(shapes.collect()), spans));
        }
        let index = |position| self.program.resolve(indices.get(position));
        let ask = |position| {
            if position < indices.len()
                && let Ok(index) = index(position)
            {
                leaf.prefetch_shape(index);
            }
        };
        let mut shapes = Vec::with_capacity(indices.len());
        let mut all_known = true;
        (0..AHEAD).for_each(ask);
        for position in 0..indices.len() {
            ask(position + AHEAD);
            match leaf.shape(index(position)?)? {
                Some(shape) => shapes.push(shape),
                None => all_known = false, // an error of a later sample comes first
            }
        }
        Ok((all_known.then_some(shapes), Spans::new()))
    }

    /// Makes a slot for each sample.
    pub(super) fn apart(&self, place: usize, indices: &Indices) -> Result<Slot> {
        let leaf = &self.program.leaves[place];
        let slots = (0..indices.len()).map(|position| {
            let index = self.program.resolve(indices.get(position))?;
            if leaf.kind() == Kind::Lists {
                return tree::slot(&[leaf.at(index)?], self.program.lists[place]);
            }
            let Some(shape) = leaf.shape(index)? else {
                return Ok(Slot::loose(1, leaf.dtype()));
            };
            let mut shapes = [shape];
            let dtype = self.program.rules[place].seen(leaf.dtype(), &mut shapes);
            let [shape] = shapes;
            let elements = shape.iter().product::<usize>();
            let memory = Destination::Lease(lease(elements * dtype.itemsize())?);
            Ok(Slot::fixed(memory, 1, shape, dtype))
        });
        Ok(Slot::apart(slots.collect::<Result<_>>()?))
    }

    /// Joins samples that stayed by themselves, unless that is what was asked for.
    pub(super) fn joined(
        &self,
        place: usize,
        samples: Vec<Field>,
        indices: &Indices,
    ) -> Result<Field> {
        let rule = &self.program.rules[place];
        if matches!(rule.how, How::Apart | How::Pack(_)) {
            return Ok(Field::Apart(samples));
        }
        let arrays = samples.into_iter().map(|sample| match sample {
            Field::Dense(dense) => Ok(dense),
            _ => Err(Error::Abandoned), // not seen: lists are not joined
        });
        let arrays = arrays.collect::<Result<Vec<Dense>>>()?;
        let joined = rule.join(&arrays, self.program.leaves[place].dtype());
        joined.map_err(|error| of_sample(error, indices))
    }
}

/// Adds which sample of the dataset an error is about.
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
