//! Where a stream's tasks come from: an order to slice, batches of a sampler, or the caller's hand.

use std::collections::VecDeque;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyRange};

use super::{index, tensor};
use crate::order::{Indices, Slicer};
use crate::program::Planned;
use crate::sync::{Mutex, lock};

/// What tasks are pulled from.
pub(super) enum Source {
    /// Stretches of an epoch, to be cut into batches natively.
    Order { chunks: Py<PyAny>, slicer: Slicer },
    /// An iterator of batches of indices, or of single ones, and what makes a task in Python whose
    /// indices are no plain numbers.
    Batches {
        batches: Py<PyAny>,
        batched: bool,
        /// Whether tensors without dimensions are numbers.
        tensors: bool,
        /// Whether the state of a task is which of its samples count.
        marks: bool,
        /// Where given, only ints from 0 to there are plain numbers.
        below: Option<i64>,
        fetch: Py<PyAny>,
    },
}

/// A task that waits to be admitted.
pub(super) struct Pulled {
    pub(super) indices: Indices,
    pub(super) state: Option<Box<[u8]>>,
    /// What is handed over in place of a native batch; there are no indices then.
    pub(super) instead: Option<PyResult<Py<PyAny>>>,
    /// What the batch is planned to take, once somebody has asked.
    pub(super) planned: Option<Planned>,
}

/// Whether tasks are being admitted.
#[derive(Default, PartialEq)]
enum Admission {
    /// By nobody.
    #[default]
    Idle,
    /// By some thread.
    Running,
    /// By some thread, and others wanted to meanwhile: it looks again.
    Wanted,
}

#[derive(Default)]
struct Inner {
    source: Option<Source>,
    pulled: VecDeque<Pulled>,
    /// The source is out of its place: some thread asks it.
    asking: bool,
    /// Tasks that others wanted meanwhile; whoever asks pulls them, too.
    owed: usize,
    /// Place of the next task's first sample in the iterator's stream of samples.
    place: u64,
    admission: Admission,
    closed: bool,
}

/// Tasks that are pulled, but not in flight yet: indices only, no memory of batches.
#[derive(Default)]
pub(super) struct Feed(Mutex<Inner>);

impl Feed {
    /// Makes a feed whose first sample is at `place` in the iterator's stream of samples.
    pub(super) fn starting_at(place: u64) -> Feed {
        Feed(Mutex::new(Inner {
            place,
            ..Inner::default()
        }))
    }

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

    /// Gives tasks to `submit`, with the place of their first sample, as long as `fits` lets the next
    /// one in. One thread does so at a time, for all: tasks are submitted
    /// in the order in which they were pulled.
    pub(super) fn admit(
        &self,
        fits: impl Fn(&mut Pulled) -> bool,
        mut submit: impl FnMut(Pulled, u64),
    ) {
        let mut inner = lock(&self.0);
        if inner.admission != Admission::Idle {
            inner.admission = Admission::Wanted;
            return;
        }
        inner.admission = Admission::Running;
        loop {
            let fits = inner.pulled.front_mut().is_some_and(&fits);
            if let Some(pulled) = fits.then(|| inner.pulled.pop_front()).flatten() {
                let place = inner.place;
                inner.place += pulled.indices.len() as u64;
                drop(inner); // no lock is held while Python runs
                submit(pulled, place);
                inner = lock(&self.0);
            } else if inner.admission == Admission::Wanted {
                inner.admission = Admission::Running;
            } else {
                break;
            }
        }
        inner.admission = Admission::Idle;
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
        match self {
            Source::Order { chunks, slicer } => {
                while slicer.is_hungry() {
                    match next(chunks.bind(py))? {
                        Some(chunk) => slicer.push(stretch(&chunk)?),
                        None => slicer.end(),
                    }
                }
                Ok(slicer.next_batch().map(Pulled::native))
            }
            Source::Batches {
                batches,
                batched,
                tensors,
                marks,
                below,
                fetch,
            } => {
                let next = next(batches.bind(py))?;
                let how = [*batched, *tensors, *marks];
                Ok(next.map(|task| task_of(task, how, *below, fetch.bind(py))))
            }
        }
    }
}

impl Pulled {
    /// A batch to make natively.
    pub(super) fn native(indices: Indices) -> Pulled {
        Pulled {
            indices,
            state: None,
            instead: None,
            planned: None,
        }
    }

    /// What Python made of a task, or its error.
    fn made(instead: PyResult<Py<PyAny>>) -> Pulled {
        Pulled {
            instead: Some(instead),
            ..Pulled::native(Indices::list([]))
        }
    }
}

/// Advances an iterator, as `next` does. `iter` is not asked again: there are samplers that begin anew then.
fn next<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    iterator.cast::<PyIterator>()?.clone().next().transpose()
}

/// Reads a task; one that is not made of plain numbers is made by `fetch`, here and now.
fn task_of(
    task: Bound<'_, PyAny>,
    [batched, tensors, marks]: [bool; 3],
    below: Option<i64>,
    fetch: &Bound<'_, PyAny>,
) -> Pulled {
    let read = || -> PyResult<Pulled> {
        let is_spent = batched && task.cast::<PyIterator>().is_ok(); // it can be iterated only once
        let task = if is_spent {
            PyList::new(task.py(), task.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any()
        } else {
            task
        };
        let state = marks.then(|| index::marks(&task)).transpose()?;
        let pulled = match index::read(&task, batched, tensors, below)? {
            Some(indices) => Pulled::native(indices),
            None => Pulled::made(Ok(fetch.call1((task,))?.unbind())),
        };
        Ok(Pulled { state, ..pulled })
    };
    read().unwrap_or_else(|error| Pulled::made(Err(error)))
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
