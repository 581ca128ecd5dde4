//! What became of a stream's tasks where that is not a native batch of good samples only.
//!
//! Owns the batches that Python makes in place of native ones, until their turn; what one that Ctrl-C stopped
//! is made from; and the bad samples of the batch taken last, until they are asked for.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::Error;
use crate::program::BadSample;
use crate::sync::{Mutex, lock};

/// A batch made in Python, or its exception: objects that the garbage collector can visit, as an exception's
/// frames lead to the iterator.
pub(super) type Made = Result<Py<PyAny>, Py<PyBaseException>>;

/// Visits a batch made in Python, for the garbage collector.
pub(super) fn visit_made(visit: &PyVisit<'_>, made: &Made) -> Result<(), PyTraverseError> {
    match made {
        Ok(batch) => visit.call(batch),
        Err(error) => visit.call(error),
    }
}

/// What Python is asked for in place of a batch: its indices, its seq, the position of its first sample in the
/// iterator's stream of samples.
type Again = (Vec<i64>, u64, u64);

/// The batches of a stream that Python makes.
pub(super) struct MadeBatches {
    /// Those of tasks that cannot be begun natively, by seq.
    ahead: Mutex<HashMap<u64, Made>>,
    /// Makes a batch that native code declined.
    again: Option<Py<PyAny>>,
    /// A batch that Ctrl-C stopped.
    interrupted: Mutex<Option<Again>>,
}

impl MadeBatches {
    pub(super) fn new(again: Option<Py<PyAny>>) -> MadeBatches {
        MadeBatches {
            ahead: Mutex::default(),
            again,
            interrupted: Mutex::default(),
        }
    }

    /// Submits a task and keeps the batch that is made for it, if any, before anyone can ask for it.
    pub(super) fn keep(&self, made: Option<Made>, submit: impl FnOnce() -> u64) {
        let mut ahead = lock(&self.ahead);
        let seq = submit();
        ahead.extend(made.map(|made| (seq, made)));
    }

    /// Returns the batch in place of one that failed natively, or raises its error; None if Python makes none.
    pub(super) fn in_place_of<'py>(
        &self,
        py: Python<'py>,
        seq: u64,
        error: &Error,
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        if let (Error::Declined { indices, first, .. }, Some(again)) = (error, &self.again) {
            return Some(self.made_again(py, (indices.clone(), seq, *first), again));
        }
        let made = lock(&self.ahead).remove(&seq)?;
        Some(match made {
            Ok(batch) => Ok(batch.into_bound(py)),
            Err(raised) => Err(PyErr::from_value(raised.into_bound(py).into_any())),
        })
    }

    /// Makes the batch that Ctrl-C stopped, if one was.
    pub(super) fn interrupted<'py>(&self, py: Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>> {
        let task = lock(&self.interrupted).take()?;
        Some(self.made_again(py, task, self.again.as_ref()?))
    }

    fn made_again<'py>(
        &self,
        py: Python<'py>,
        task: Again,
        again: &Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = again.bind(py).call1(task.clone());
        let is_interrupt = |error: &PyErr| error.is_instance_of::<PyKeyboardInterrupt>(py);
        if made.as_ref().is_err_and(is_interrupt) {
            *lock(&self.interrupted) = Some(task);
        }
        made
    }

    pub(super) fn clear(&self) {
        let made = mem::take(&mut *lock(&self.ahead));
        drop(made); // outside of the lock, as it may run Python
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.again)?;
        if let Ok(ahead) = self.ahead.try_lock() {
            for made in ahead.values() {
                visit_made(visit, made)?;
            }
        }
        Ok(())
    }
}

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
