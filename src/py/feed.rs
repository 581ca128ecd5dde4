//! The source of a stream's tasks: an order to slice, or batches of a sampler.

use std::collections::VecDeque;

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::order;
use super::outcome::{Made, visit_made};
use crate::order::{Indices, Position, Slicer};
use crate::program::Planned;
use crate::sync::{Mutex, lock};

/// The source of tasks.
pub(super) enum Source {
    /// Chunks of an epoch's order, cut into batches natively.
    Order { chunks: Py<PyAny>, slicer: Slicer },
    /// An iterator over batches of indices, or over single indices, and a function that makes a batch in
    /// Python for indices that are not plain integers.
    Batches {
        batches: Py<PyAny>,
        batched: bool,
        /// True if tensors without dimensions count as integers.
        tensors: bool,
        /// True if the state of a task says which of its samples count.
        marks: bool,
        /// If set, only ints from 0 to below this count as plain integers.
        below: Option<i64>,
        fetch: Py<PyAny>,
    },
}

/// A task that waits to be admitted.
pub(super) struct Pulled {
    /// Its number, if tasks before it were left out.
    pub(super) skip_to: Option<u64>,
    /// Position of its first sample in the iterator's stream of samples.
    pub(super) first: u64,
    pub(super) indices: Indices,
    pub(super) state: Option<Box<[u8]>>,
    /// The batch made in Python in place of a native one; there are no indices then.
    pub(super) python_batch: Option<Made>,
    /// The planned size of the batch, once it is computed.
    pub(super) planned: Option<Planned>,
}

/// Tells which thread admits tasks.
#[derive(Default, PartialEq)]
enum Admission {
    /// No thread.
    #[default]
    Idle,
    /// One thread.
    Running,
    /// One thread, and another one asked meanwhile: the first checks again.
    Wanted,
}

#[derive(Default)]
struct Inner {
    source: Option<Source>,
    pulled: VecDeque<Pulled>,
    /// A thread has taken the source out to pull from it.
    pulling: bool,
    /// Tasks that other threads asked for meanwhile; the pulling thread pulls them too.
    owed: usize,
    /// Position of the next task's first sample in the iterator's stream of samples.
    place: u64,
    /// Number of the next task.
    seq: u64,
    /// Tasks whose batches an earlier run has handed over are left out.
    earlier: Position,
    admission: Admission,
    closed: bool,
}

/// Tasks that are pulled but not in flight: indices only, no memory for batches.
pub(super) struct Feed(Mutex<Inner>);

impl Feed {
    /// Makes a feed whose first sample is at position `place` in the iterator's stream of samples, and whose first
    /// task is the first that `earlier` has not handed over.
    pub(super) fn starting_at(place: u64, earlier: Position) -> Feed {
        Feed(Mutex::new(Inner {
            place,
            seq: earlier.first(),
            earlier,
            ..Inner::default()
        }))
    }

    /// Sets the source, which is advanced only when a task is pulled.
    pub(super) fn set(&self, source: Source) {
        let old = lock(&self.0).source.replace(source);
        drop(old);
    }

    /// Pulls the next task, if the source has one. An error of the source takes the place of that task.
    ///
    /// # Errors
    ///
    /// What is no `Exception`, such as `KeyboardInterrupt`; and the error in place of a task that is left out.
    pub(super) fn pull(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner = lock(&self.0);
        if inner.pulling {
            inner.owed += 1;
            return Ok(());
        }
        let Some(mut source) = inner.source.take() else {
            return Ok(());
        };
        inner.pulling = true;
        let outcome = loop {
            let is_left_out = inner.earlier.has(inner.seq);
            drop(inner); // no lock is held while Python runs
            let pulled = source.next(py, is_left_out).or_else(|error| {
                if is_left_out || !error.is_instance_of::<PyException>(py) {
                    return Err(error);
                }
                Ok(Some(Pulled::made(Err(error.into_value(py)))))
            });
            inner = lock(&self.0);
            match pulled {
                Ok(Some(pulled)) => {
                    inner.add(pulled);
                    if is_left_out {
                        continue;
                    }
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            }
            if inner.owed == 0 {
                break Ok(());
            }
            inner.owed -= 1;
        };
        inner.pulling = false;
        if !inner.closed {
            inner.source = Some(source);
        }
        outcome
    }

    /// Passes tasks to `submit` as long as `fits` admits the next.
    /// One thread does so at a time, for all, so that tasks are submitted in the order in which they were
    /// pulled.
    pub(super) fn admit(&self, fits: impl Fn(&mut Pulled) -> bool, mut submit: impl FnMut(Pulled)) {
        let mut inner = lock(&self.0);
        if inner.admission != Admission::Idle {
            inner.admission = Admission::Wanted;
            return;
        }
        inner.admission = Admission::Running;
        loop {
            let fits = inner.pulled.front_mut().is_some_and(&fits);
            if let Some(pulled) = fits.then(|| inner.pulled.pop_front()).flatten() {
                drop(inner); // no lock is held while Python runs
                submit(pulled);
                inner = lock(&self.0);
            } else if inner.admission == Admission::Wanted {
                inner.admission = Admission::Running;
            } else {
                break;
            }
        }
        inner.admission = Admission::Idle;
    }

    /// Visits what it pulls from, for the garbage collector; nothing while a thread holds the lock.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(inner) = self.0.try_lock() else {
            return Ok(());
        };
        for pulled in &inner.pulled {
            if let Some(made) = &pulled.python_batch {
                visit_made(visit, made)?;
            }
        }
        match &inner.source {
            Some(Source::Order { chunks, .. }) => visit.call(chunks),
            Some(Source::Batches { batches, fetch, .. }) => {
                visit.call(batches)?;
                visit.call(fetch)
            }
            None => Ok(()),
        }
    }

    pub(super) fn clear(&self) {
        let mut inner = lock(&self.0);
        inner.closed = true;
        let old = (inner.source.take(), std::mem::take(&mut inner.pulled));
        drop(inner);
        drop(old);
    }
}

impl Inner {
    /// Numbers a task; keeps it unless an earlier run has handed its batch over.
    fn add(&mut self, pulled: Pulled) {
        let (seq, first) = (self.seq, self.place);
        self.seq += 1;
        self.place += pulled.indices.len() as u64;
        if !self.earlier.has(seq) {
            self.pulled.push_back(Pulled {
                skip_to: (seq > 0 && self.earlier.has(seq - 1)).then_some(seq),
                first,
                ..pulled
            });
        }
    }
}

impl Source {
    /// Returns the next task; makes nothing in Python of one that is left out.
    fn next(&mut self, py: Python<'_>, is_left_out: bool) -> PyResult<Option<Pulled>> {
        match self {
            Source::Order { chunks, slicer } => {
                while slicer.needs_chunk() {
                    match next(chunks.bind(py))? {
                        Some(chunk) => slicer.push(order::read_chunk(&chunk)?),
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
                let fetch = (!is_left_out).then(|| fetch.bind(py));
                Ok(next.map(|task| task_of(task, how, *below, fetch)))
            }
        }
    }
}

impl Pulled {
    /// Makes a task for a native batch.
    fn native(indices: Indices) -> Pulled {
        Pulled {
            skip_to: None,
            first: 0,
            indices,
            state: None,
            python_batch: None,
            planned: None,
        }
    }

    /// Makes a task from a batch made in Python, or from its error.
    fn made(python_batch: Made) -> Pulled {
        Pulled {
            python_batch: Some(python_batch),
            ..Pulled::native(Indices::list([]))
        }
    }
}

/// Advances an iterator, as `next` does. Does not call `iter`: some samplers restart then.
fn next<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    iterator.cast::<PyIterator>()?.clone().next().transpose()
}

/// Reads a task; `fetch` makes the batch at once if the indices are not plain integers.
fn task_of(
    task: Bound<'_, PyAny>,
    [batched, tensors, marks]: [bool; 3],
    below: Option<i64>,
    fetch: Option<&Bound<'_, PyAny>>,
) -> Pulled {
    let py = task.py();
    let read = || -> PyResult<Pulled> {
        let is_spent = batched && task.cast::<PyIterator>().is_ok(); // it can be iterated only once
        let task = if is_spent {
            PyList::new(py, task.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any()
        } else {
            task
        };
        let state = marks.then(|| order::marks(&task)).transpose()?;
        let pulled = match (order::read_indices(&task, batched, tensors, below)?, fetch) {
            (Some(indices), _) => Pulled::native(indices),
            (None, Some(fetch)) => Pulled::made(Ok(fetch.call1((task,))?.unbind())),
            (None, None) => Pulled::native(Indices::list([])),
        };
        Ok(Pulled { state, ..pulled })
    };
    read().unwrap_or_else(|error| Pulled::made(Err(error.into_value(py))))
}
