//! The one word for leaving the interpreter.

use pyo3::prelude::*;

/// Crossing into native code.
pub(super) trait Enter {
    /// Detaches, runs `body`, and converts its error.
    fn enter<T: Send>(self, body: impl FnOnce() -> crate::Result<T> + Send) -> PyResult<T>;
}

impl Enter for Python<'_> {
    fn enter<T: Send>(self, body: impl FnOnce() -> crate::Result<T> + Send) -> PyResult<T> {
        Ok(self.detach(body)?)
    }
}
