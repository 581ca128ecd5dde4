//! Where a stream's tasks come from: an order to slice, batches of a sampler, or the caller's hand.

use std::collections::VecDeque;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyRange;

use super::tensor;
use crate::order::{Indices, Slicer};
use crate::sync::{Mutex, lock};

/// What tasks are pulled from.
pub(super) enum Source {
    /// Stretches of an epoch, to be cut into batches natively.
    Order { chunks: Py<PyAny>, slicer: Slicer },
    /// An iterator of batches of indices, or of single ones.
    Batches { batches: Py<PyAny>, batched: bool },
}

/// A task that waits to be admitted.
pub(super) struct Pulled {
    pub(super) indices: Indices,
    pub(super) state: Option<Box<[u8]>>,
    /// Why the indices could not be read; there are none then.
    pub(super) error: Option<PyErr>,
}

#[derive(Default)]
struct Inner {
    source: Option<Source>,
    pulled: VecDeque<Pulled>,
    /// The source is out of its place: some thread asks it.
    asking: bool,
    /// Tasks that others wanted meanwhile; whoever asks pulls them, too.
    owed: usize,
    closed: bool,
}

/// Tasks that are pulled, but not in flight yet: indices only, no memory of batches.
#[derive(Default)]
pub(super) struct Feed(Mutex<Inner>);

impl Feed {
    /// Takes a source, which is asked for more only when a task is pulled.
    pub(super) fn set(&self, source: Source) {
        let old = lock(&self.0).source.replace(source);
        drop(old);
    }

    /// Adds a task by hand.
    pub(super) fn push(&self, pulled: Pulled) {
        lock(&self.0).pulled.push_back(pulled);
    }

    /// Pulls the next task, if the source has one. An error is the source's own.
    pub(super) fn pull(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner = lock(&self.0);
        if inner.asking {
            inner.owed += 1;
            return Ok(());
        }
        let Some(mut source) = inner.source.take() else {
            return Ok(());
        };
        inner.asking = true;
        let outcome = loop {
            drop(inner); // no lock is held while Python runs
            let pulled = source.next(py);
            inner = lock(&self.0);
            match pulled {
                Ok(pulled) => inner.pulled.extend(pulled),
                Err(error) => break Err(error),
            }
            if inner.owed == 0 {
                break Ok(());
            }
            inner.owed -= 1;
        };
        inner.asking = false;
        if !inner.closed {
            inner.source = Some(source);
        }
        outcome
    }

    /// Takes the next task if `admit`, given its number of indices, lets it in.
    pub(super) fn next_if(&self, admit: impl FnOnce(usize) -> bool) -> Option<Pulled> {
        let mut inner = lock(&self.0);
        let samples = inner.pulled.front()?.indices.len();
        admit(samples).then(|| inner.pulled.pop_front())?
    }

    /// Gives everything up.
    pub(super) fn clear(&self) {
        let mut inner = lock(&self.0);
        inner.closed = true;
        let old = (inner.source.take(), std::mem::take(&mut inner.pulled));
        drop(inner);
        drop(old);
    }
}

impl Source {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Pulled>> {
        let read = match self {
            Source::Order { chunks, slicer } => {
                while slicer.is_hungry() {
                    match chunks.bind(py).try_iter()?.next().transpose()? {
                        Some(chunk) => slicer.push(stretch(&chunk)?),
                        None => slicer.end(),
                    }
                }
                slicer.next_batch().map(Ok)
            }
            Source::Batches { batches, batched } => {
                let next = batches.bind(py).try_iter()?.next().transpose()?;
                next.map(|task| read(&task, *batched))
            }
        };
        Ok(read.map(|read| {
            let (indices, error) = match read {
                Ok(indices) => (indices, None),
                Err(error) => (Indices::list([]), Some(error)),
            };
            Pulled {
                indices,
                state: None,
                error,
            }
        }))
    }
}

/// Reads one stretch of an epoch: an int64 tensor, or a range.
fn stretch(chunk: &Bound<'_, PyAny>) -> PyResult<Indices> {
    let Ok(range) = chunk.cast::<PyRange>() else {
        return tensor::indices(chunk).map(Indices::list);
    };
    let start: i64 = range.getattr("start")?.extract()?;
    let stop: i64 = range.getattr("stop")?.extract()?;
    let step: i64 = range.getattr("step")?.extract()?;
    if step != 1 {
        return Err(PyTypeError::new_err("a range of indices must have step 1"));
    }
    Ok(Indices::Span(start..stop.max(start)))
}

/// Reads the indices of one task as the dataset would.
fn read(task: &Bound<'_, PyAny>, batched: bool) -> PyResult<Indices> {
    if !batched {
        return Ok(Indices::list([task.extract()?]));
    }
    let indices = task.try_iter()?.map(|index| index?.extract::<i64>());
    Ok(Indices::list(indices.collect::<PyResult<Vec<_>>>()?))
}
