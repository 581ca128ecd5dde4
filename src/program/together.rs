//! What concerns several fields of a batch: rows they share, lengths that must agree, and who else is asked for
//! a batch that does not fit together.

use super::ruled::of_sample;
use super::run::Run;
use crate::collate::Field;
use crate::error::{Error, Result};
use crate::order::Indices;

impl Run {
    /// Does what concerns several fields of a batch.
    pub(super) fn together(&self, fields: Vec<Field>, indices: &Indices) -> Result<Vec<Field>> {
        if self.is_to_pack(&fields) {
            return self.pack(fields, indices);
        }
        if self.program.asks && fields.iter().any(is_unsure) {
            return Err(Error::Unsure);
        }
        for (rule, field) in self.program.rules.iter().zip(&fields) {
            if let Some(tokens) = rule.like.and_then(|like| fields.get(like)) {
                let checked = rule.check_like(field, tokens);
                checked.map_err(|error| of_sample(error, indices))?;
            }
        }
        Ok(fields)
    }

    /// Says of which batch an error is, where somebody else is asked for that.
    pub(super) fn declined(&self, error: Error, indices: &Indices) -> Error {
        let is_unsure = match &error {
            Error::Leaf { source, .. } => matches!(**source, Error::Unsure),
            error => matches!(error, Error::Unsure),
        };
        if !self.program.asks && !is_unsure {
            return error;
        }
        Error::Declined {
            indices: (0..indices.len()).map(|at| indices.get(at)).collect(),
            source: Box::new(error),
        }
    }
}

/// Whether only its maker knows what a field is: one without numbers, whose type no column tells, or padded
/// samples of several dimensions.
fn is_unsure(field: &Field) -> bool {
    match field {
        Field::Dense(dense) => dense.memory.is_empty(),
        Field::Padded(padded) => padded.values.memory.is_empty() || padded.values.shape.len() != 2,
        _ => false,
    }
}
