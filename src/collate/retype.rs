//! Fields of another element type than their samples'.

use super::{Dense, Field};
use crate::column::Cast;
use crate::error::Result;
use crate::memory::{Dtype, lease};

impl Field {
    /// Converts stacked or padded numbers; what is of the type already, or no such field, stays.
    pub(super) fn retyped(self, to: Dtype) -> Result<Field> {
        match self {
            Field::Dense(dense) => dense.retyped(to).map(Field::Dense),
            Field::Padded(mut padded) => {
                padded.values = padded.values.retyped(to)?;
                Ok(Field::Padded(padded))
            }
            other => Ok(other),
        }
    }
}

impl Dense {
    fn retyped(self, to: Dtype) -> Result<Dense> {
        let Some(cast) = Cast::new(self.dtype, to) else {
            return Ok(self);
        };
        let source = self.memory.bytes();
        let mut memory = lease(source.len() / self.dtype.itemsize() * to.itemsize())?;
        cast.run(source, &mut memory);
        Ok(Dense {
            memory: memory.into(),
            shape: self.shape,
            dtype: to,
        })
    }
}
