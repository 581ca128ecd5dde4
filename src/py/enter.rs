//! Leaves the interpreter for native code.

use pyo3::prelude::*;

/// Runs native code detached from the interpreter.
pub(super) trait Enter {
    /// Detaches, runs `body`, and converts its error.
    fn enter<T: Send>(self, body: impl FnOnce() -> crate::Result<T> + Send) -> PyResult<T>;
}

impl Enter for Python<'_> {
    fn enter<T: Send>(self, body: impl FnOnce() -> crate::Result<T> + Send) -> PyResult<T> {
        Ok(self.detach(body)?)
    }
}
