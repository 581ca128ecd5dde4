//! What happens while many files are looked at: signals are noticed, and Python is told how far it is.

use pyo3::prelude::*;

use crate::Result;

/// Returns what is to be called now and then, on the caller's detached thread, with how many of `total`
/// are done; `progress` is called with both.
pub(super) fn tick(
    progress: Option<&Py<PyAny>>,
    total: usize,
) -> impl FnMut(usize) -> Result<()> + Send {
    let mut tell = tell(progress);
    move |done| tell(done, total)
}

/// Returns the same where the total is known only later: it is told with how many are done of how many.
pub(super) fn tell(progress: Option<&Py<PyAny>>) -> impl FnMut(usize, usize) -> Result<()> + Send {
    move |done, total| {
        let told = Python::try_attach(|py| {
            py.check_signals()?;
            match progress {
                Some(progress) => progress.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        told.transpose()?;
        Ok(())
    }
}
