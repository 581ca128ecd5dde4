//! Callbacks while many files are read: check for signals, and report progress to Python.

use pyo3::prelude::*;

use crate::Result;

/// Returns a callback for the caller's detached thread that takes the number of finished files of `total`; it
/// calls `progress` with both.
pub(super) fn tick(
    progress: Option<&Py<PyAny>>,
    total: usize,
) -> impl FnMut(usize) -> Result<()> + Send {
    let mut tell = tell(progress);
    move |done| tell(done, total)
}

/// Returns the same for a total that is known only later: the callback takes both numbers.
pub(super) fn tell(progress: Option<&Py<PyAny>>) -> impl FnMut(usize, usize) -> Result<()> + Send {
    move |done, total| {
        let called = Python::try_attach(|py| {
            py.check_signals()?;
            match progress {
                Some(progress) => progress.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        called.transpose()?;
        Ok(())
    }
}
