//! What became of the samples of a stream's batches.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::program::BadSample;
use crate::sync::{Mutex, lock};

/// A bad sample: position, index, path, reason, exception.
type Bad = (usize, i64, Py<PyAny>, &'static str, Py<PyAny>);
/// Planned samples of the batches before that were not asked about, those of a batch, its retries, and its bad
/// samples.
pub(super) type Outcome = (usize, usize, u64, Vec<Bad>);

/// The outcome of the batch taken last, until it is asked about.
#[derive(Default)]
pub(super) struct LastOutcome {
    /// An `Outcome`, before it is converted.
    noted: Mutex<(usize, usize, u64, Vec<BadSample>)>,
    is_clean: AtomicBool,
}

impl LastOutcome {
    /// Notes the number of samples of a batch, of retries, and its bad samples; None for a batch that is not native.
    pub(super) fn note(&self, native: Option<(usize, u64, Vec<BadSample>)>) {
        let is_clean = matches!(&native, Some((_, 0, bad)) if bad.is_empty());
        self.is_clean.store(is_clean, Ordering::Relaxed);
        let (samples, retried, bad) = native.unwrap_or_default();
        let mut noted = lock(&self.noted);
        let earlier = noted.0 + noted.1;
        let old = mem::replace(&mut *noted, (earlier, samples, retried, bad));
        drop(noted);
        drop(old); // outside of the lock: it may hold exceptions
    }

    /// Returns true if the batch is native, and no sample of it was bad or tried again.
    pub(super) fn is_clean(&self) -> bool {
        self.is_clean.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Outcome> {
        let (earlier, samples, retried, bad) = mem::take(&mut *lock(&self.noted));
        let bad = bad.into_iter().map(|sample| converted(py, sample));
        Ok((earlier, samples, retried, bad.collect::<PyResult<_>>()?))
    }
}

/// Converts a bad sample, with its error as an exception.
fn converted(py: Python<'_>, sample: BadSample) -> PyResult<Bad> {
    let path = sample.path.into_os_string().into_pyobject(py)?;
    let error = PyErr::from(sample.error).into_value(py).into_any();
    let (position, index) = (sample.position, sample.index);
    Ok((
        position,
        index,
        path.into_any().unbind(),
        sample.reason.name(),
        error,
    ))
}
