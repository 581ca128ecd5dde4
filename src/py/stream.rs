//! The batches of one iterator, as Python takes them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::error::quietly;
use super::feed::{Feed, Pulled, Source};
use super::foreign::RequestQueue;
use super::form::Unit;
use super::interrupts::take_batch;
use super::outcome::{LastOutcome, MadeBatches, Outcome};
use super::program::Program;
use super::snapshot::Snapshot;
use super::steps::Spans;
use super::tensor;
use super::tune::{Watch, Window};
use crate::Error;
use crate::collate::Field;
use crate::decode::Switches;
use crate::fork::Uninherited;
use crate::order::{Indices, Position, Slicer};
use crate::program::{self, Budget, Finished, Options, Planned, Run, Task, Tolerance};
use crate::spans::Recording;
use crate::stats::Stats;
use crate::stream::{self, Limits};
use crate::sync::{Mutex, lock};

type Core = stream::Stream<Run>;

/// See the stub.
#[pyclass(frozen, weakref, module = "fastload._lib")]
pub(super) struct Stream {
    core: Uninherited<Core>,
    program: Py<Program>,
    batched: bool,
    allocate: Option<Py<PyAny>>,
    /// Decodes refused files in Python, if there is a fallback.
    requests: Option<RequestQueue>,
    feed: Feed,
    /// The batches that were handed over.
    position: Mutex<Position>,
    made: MadeBatches,
    state: Mutex<Option<Box<[u8]>>>,
    /// None where bad samples raise.
    outcome: Option<LastOutcome>,
    budget: Budget,
    /// The size above which batches are checked, and what checks them.
    check: Option<(usize, Py<PyAny>)>,
    /// Tasks to pull ahead of the batches taken.
    ahead: AtomicUsize,
    /// The counters at the end of the last window.
    last_window: Mutex<Snapshot>,
    watch: Watch,
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (program, *, batched, depth, budget_bytes, threads,
                        in_order=true, first_seq=0, missing=Vec::new(), first_place=0, max_chunk=0, allocate=None,
                        seed=0, epoch=0, repeats=false, max_pixels=None, foreign=None, again=None,
                        tolerance=None, check=None))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
    fn new(
        py: Python<'_>,
        program: Py<Program>,
        batched: bool,
        depth: usize,
        budget_bytes: usize,
        threads: usize,
        in_order: bool,
        first_seq: u64,
        missing: Vec<u64>,
        first_place: u64,
        max_chunk: usize,
        allocate: Option<Py<PyAny>>,
        seed: u64,
        epoch: u64,
        repeats: bool,
        max_pixels: Option<u64>,
        foreign: Option<Py<PyAny>>,
        again: Option<Py<PyAny>>,
        tolerance: Option<(bool, u32, [f64; 3])>,
        check: Option<(usize, Py<PyAny>)>,
    ) -> PyResult<Stream> {
        let limits = Limits {
            depth: depth.max(1),
            budget_bytes,
            threads: threads.max(1),
            max_chunk: if max_chunk == 0 {
                usize::MAX
            } else {
                max_chunk
            },
            in_order,
        };
        program.get().check_batches(py)?;
        let requests = foreign.map(RequestQueue::new);
        let options = Options {
            seed,
            epoch,
            repeats,
            switches: Switches { max_pixels },
            tolerance: tolerance.map(|(skips, retries, pauses_s)| Tolerance {
                skips,
                retries,
                pauses: pauses_s.map(Duration::from_secs_f64),
            }),
        };
        let foreign = requests
            .as_ref()
            .map(|requests| requests.queue.clone() as _);
        let outcome = options.tolerance.is_some().then(LastOutcome::default);
        let run = Run::new(program.get().core.clone(), options, foreign);
        let position = Position::new(missing, first_seq);
        let core = Core::open(run, limits, position.first()).map_err(|error| quietly(py, error))?;
        let moment = Mutex::new(Snapshot::now(core.stats(), 0, Duration::ZERO));
        Ok(Stream {
            core: Uninherited::new(core),
            program,
            batched,
            allocate,
            requests,
            feed: Feed::starting_at(first_place, position.clone()),
            position: Mutex::new(position),
            made: MadeBatches::new(again),
            state: Mutex::new(None),
            outcome,
            budget: Budget::new(budget_bytes, limits.depth),
            check,
            ahead: AtomicUsize::new(depth),
            last_window: moment,
            watch: Watch::default(),
        })
    }

    fn feed(
        &self,
        py: Python<'_>,
        chunks: Py<PyAny>,
        batch_size: Option<usize>,
        drop_last: bool,
        ahead: usize,
    ) -> PyResult<()> {
        let slicer = Slicer::new(batch_size.unwrap_or(1), drop_last);
        self.ahead.store(ahead, Ordering::Relaxed);
        self.feed.set(Source::Order { chunks, slicer });
        self.pull(py, ahead)
    }

    #[pyo3(signature = (batches, fetch, ahead, tensors, marks=false, below=None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of Python")]
    fn feed_batches(
        &self,
        py: Python<'_>,
        batches: Py<PyAny>,
        fetch: Py<PyAny>,
        ahead: usize,
        tensors: bool,
        marks: bool,
        below: Option<i64>,
    ) -> PyResult<()> {
        let batched = self.batched;
        self.ahead.store(ahead, Ordering::Relaxed);
        self.feed.set(Source::Batches {
            batches,
            batched,
            tensors,
            marks,
            below,
            fetch,
        });
        self.pull(py, ahead)
    }

    fn take<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core.here()?;
        if core.is_orphaned() {
            return Err(quietly(py, Error::Closed));
        }
        if let Some(made) = self.made.interrupted(py) {
            return made;
        }
        if let Some(requests) = &self.requests {
            requests.serve(py)?;
        }
        let Some(ready) = take_batch(py, &self.core, self.requests(), timeout_s)? else {
            return Err(PyStopIteration::new_err(()));
        };
        lock(&self.position).hand_over(ready.seq);
        let old = std::mem::replace(&mut *lock(&self.state), ready.state);
        drop(old);
        self.pull(py, 1)?;
        self.watch.tick(py)?;
        self.program.get().check(py, Some(ready.seq))?;
        let Finished {
            fields,
            samples,
            retried,
            bad,
        } = match ready.output {
            Ok(finished) => finished,
            Err(error) => {
                if let Some(outcome) = &self.outcome {
                    outcome.note(None);
                }
                let made = self.made.in_place_of(py, ready.seq, &error);
                return made.unwrap_or_else(|| Err(self.program.get().advised(py, error)));
            }
        };
        if let Some(outcome) = &self.outcome {
            outcome.note(Some((samples, retried, bad)));
        }
        if fields.is_empty() {
            return Ok(py.None().into_bound(py));
        }
        let bytes: usize = fields.iter().map(Field::bytes).sum();
        self.budget.took(bytes);
        let (program, unit) = (self.program.get(), Unit::of_stream(self.batched));
        let allocate = self.allocate.as_ref();
        program.build(py, fields, unit, |field| {
            tensor::of_field_by(py, field, allocate)
        })
    }

    fn watch(&self, seconds: f64, batches: i64, look: Py<PyAny>) {
        self.watch.set(seconds, batches, look);
    }

    #[pyo3(signature = (spans, epoch=0))]
    fn record(&self, spans: Option<&Bound<'_, Spans>>, epoch: u32) -> PyResult<()> {
        let spans = spans.map(|spans| spans.get().0.here()).transpose()?;
        if let Some(core) = self.core.get() {
            core.record(spans.cloned().map(|spans| Recording { spans, epoch }));
        }
        Ok(())
    }

    fn set_threads(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        let core = self.core.here()?;
        py.detach(|| core.adjust(|limits| limits.threads = threads.max(1)));
        Ok(())
    }

    fn set_depth(&self, py: Python<'_>, depth: usize) -> PyResult<()> {
        self.core
            .here()?
            .adjust(|limits| limits.depth = depth.max(1));
        self.budget.set_depth(depth.max(1));
        self.admit(py)?;
        let ahead = self.ahead.fetch_max(depth, Ordering::Relaxed);
        self.pull(py, depth.saturating_sub(ahead))
    }

    fn state<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let state = lock(&self.state).clone();
        state.map(|state| PyBytes::new(py, &state))
    }

    fn overtaken(&self) -> Vec<u64> {
        lock(&self.position).missing().to_vec()
    }

    fn is_clean(&self) -> bool {
        self.outcome.as_ref().is_none_or(LastOutcome::is_clean)
    }

    fn outcome(&self, py: Python<'_>) -> PyResult<Outcome> {
        let outcome = self.outcome.as_ref();
        outcome.map_or_else(|| Ok(Outcome::default()), |outcome| outcome.take(py))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let moment = self.snapshot(self.core.here()?.stats());
        let dict = moment.counters(py)?;
        for (name, count) in [
            ("batch_bytes", self.budget.batch_bytes()),
            ("oversize_batches", self.budget.oversize()),
        ] {
            dict.set_item(name, count)?;
        }
        self.requests
            .iter()
            .try_for_each(|requests| requests.count(&dict))?;
        Ok(dict)
    }

    /// See the stub.
    fn window(&self, pool_cpu_s: f64, memory_share: f64) -> PyResult<Window> {
        let now = self.snapshot(self.core.here()?.window());
        let mut last = lock(&self.last_window);
        let window = now.since(&last, pool_cpu_s, memory_share);
        *last = now;
        Ok(window)
    }

    /// Visits what the stream holds, for the garbage collector: a dataset may refer to the loader that holds
    /// it.
    #[allow(clippy::needless_pass_by_value)] // PyO3's signature
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.allocate)?;
        visit.call(self.check.as_ref().map(|(_, check)| check))?;
        self.made.traverse(&visit)?;
        self.feed.traverse(&visit)
    }

    fn close(&self) {
        if let Ok(core) = self.core.here() {
            core.cancel();
            self.requests.iter().for_each(RequestQueue::close);
            self.feed.clear();
            self.made.clear();
            self.watch.clear();
        }
    }
}

impl Stream {
    /// Returns the files that Python is asked to decode; None for a program without images, which asks for none.
    fn requests(&self) -> Option<&RequestQueue> {
        let has_images = self.program.get().core.has_images();
        self.requests.as_ref().filter(|_| has_images)
    }

    /// Returns the counters as of now.
    fn snapshot(&self, stats: Stats) -> Snapshot {
        let largest_bytes = self.budget.largest_bytes();
        let asked = self
            .requests
            .as_ref()
            .map(RequestQueue::spent)
            .unwrap_or_default();
        Snapshot::now(stats, largest_bytes, asked)
    }

    /// Pulls tasks one by one, so that the first batches are made while later indices are drawn.
    fn pull(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.core.here()?;
        for _ in 0..count {
            self.feed.pull(py)?;
            self.admit(py)?;
        }
        Ok(())
    }

    /// Submits pulled tasks while there is room.
    fn admit(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.core.here()?;
        let program = &self.program.get().core;
        let planned = |pulled: &mut Pulled| {
            let known = || self.budget.plan(program, &pulled.indices);
            self.budget.bytes(*pulled.planned.get_or_insert_with(known))
        };
        let submit = |mut pulled: Pulled| {
            let bytes = planned(&mut pulled);
            self.budget.count(bytes);
            let Pulled {
                skip_to,
                first,
                mut indices,
                state,
                mut python_batch,
                planned: size,
            } = pulled;
            let mut destinations = Vec::new();
            if python_batch.is_none() {
                let allocate = |allocate: &Py<PyAny>| {
                    tensor::destinations(allocate.bind(py), program, &indices, self.batched)
                };
                let checked = self.check(py, program, size, &indices, first);
                let made =
                    checked.and_then(|()| self.allocate.as_ref().map_or(Ok(vec![]), allocate));
                match made {
                    Ok(made) => destinations = made,
                    Err(refused) => {
                        let refused = refused.into_value(py);
                        (indices, python_batch) = (Indices::list([]), Some(Err(refused)));
                    }
                }
            }
            let task = Task {
                indices,
                first,
                batched: self.batched,
                destinations,
                attempts: None,
            };
            self.made.keep(python_batch, || {
                if let Some(seq) = skip_to {
                    core.skip_to(seq);
                }
                core.submit(task, bytes, state)
            });
        };
        self.feed
            .admit(|pulled| core.has_room(planned(pulled)), submit);
        Ok(())
    }

    /// Has a large batch checked, if its size is known, before any of its memory is allocated.
    fn check(
        &self,
        py: Python<'_>,
        program: &program::Program,
        size: Option<Planned>,
        indices: &Indices,
        first: u64,
    ) -> PyResult<()> {
        match (&self.check, size) {
            (Some((most, check)), Some(size)) if size.is_whole && size.bytes > *most => {
                let only = (indices.len() == 1).then(|| program.path(indices.get(0)));
                let known = (size.bytes, indices.len(), first, only.flatten());
                check.call1(py, known).map(drop)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(core) = self.core.get() {
            core.cancel();
            self.requests.iter().for_each(RequestQueue::close);
        }
    }
}
