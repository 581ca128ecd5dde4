//! Labels for language models: a copy of the tokens in which the padding token is replaced.

use super::Dense;
use crate::error::Result;
use crate::memory::{Dtype, lease};

/// A token and its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The token to replace.
    pub token: i64,
    /// The label that replaces it.
    pub label: i64,
}

impl Labels {
    /// Makes the labels of int64 tokens; None for other dtypes.
    pub(super) fn of(self, tokens: &Dense) -> Result<Option<Dense>> {
        if tokens.dtype != Dtype::Int64 {
            return Ok(None);
        }
        let (token, label) = (self.token.to_ne_bytes(), self.label.to_ne_bytes());
        let source = tokens.memory.bytes();
        let mut memory = lease(source.len())?;
        let places = memory.as_chunks_mut::<8>().0;
        for (place, found) in places.iter_mut().zip(source.as_chunks::<8>().0) {
            *place = if *found == token { label } else { *found };
        }
        Ok(Some(Dense {
            memory: memory.into(),
            shape: tokens.shape.clone(),
            dtype: tokens.dtype,
        }))
    }
}
