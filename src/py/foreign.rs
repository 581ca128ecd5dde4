//! Passes files that native code refuses to Python, and the pixels back.
//!
//! Owns the open requests of one stream, and the exceptions that answer some. The answering thread is
//! Python's: it waits here, detached, and holds only this queue, so that it keeps no iterator alive and ends
//! with the stream. Refuses to start it: the consumer has it started when the first request is there.
//!
//! Invariant: samples are completed by detached threads, so that no Python object is freed under a lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use std::{error, fmt, mem};

use pyo3::exceptions::{PyBaseException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::Error;
use crate::column::BlobSource;
use crate::column::Refused;
use crate::decode::{Format, Library};
use crate::error::{Fault, Reason};
use crate::fork::Uninherited;
use crate::image::{Frame, Shape};
use crate::program::{self, FallbackDecoder};
use crate::sync::{Arc, Condvar, Mutex, lock, wait};

/// Decoded pixels, and their (height, width, channels).
type Pixels<'py> = (Bound<'py, PyBytes>, (usize, usize, usize));

/// A Python exception on its way through native code.
pub(super) struct Raised(pub(super) PyErr);

// PyErr's own implementation would attach to the interpreter.
impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Python code raised an exception")
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Raised {}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Error {
        Error::Fallback {
            source: Box::new(Raised(error)),
            fault: Fault::Fatal,
        }
    }
}

/// Calls `decode` for a file, on this thread.
pub(super) fn decode(decode: &Py<PyAny>, refused: &Refused) -> crate::Result<Frame> {
    let frame = Python::try_attach(|py| {
        let answer = decode.call1(py, (source(py, refused)?, refused.reading.name()))?;
        let (pixels, shape): Pixels<'_> = answer.extract(py)?;
        frame(refused, pixels.as_bytes(), shape)
    });
    frame.unwrap_or(Err(Error::Closed))
}

fn frame(
    refused: &Refused,
    pixels: &[u8],
    (height, width, channels): (usize, usize, usize),
) -> crate::Result<Frame> {
    let shape = Shape::new(height, width, channels);
    refused.frame(pixels, shape)
}

/// Returns the path of a refused file, or its bytes.
fn source<'py>(py: Python<'py>, refused: &Refused) -> PyResult<Bound<'py, PyAny>> {
    match &refused.source {
        BlobSource::File(path) => Ok(path.as_os_str().into_pyobject(py)?.into_any()),
        BlobSource::Memory(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
    }
}

/// The open requests of one stream.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    came: Condvar,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<program::Request>,
    /// The number of the thread that answers, or is about to start.
    server: Option<u64>,
    /// Number of threads started.
    servers: u64,
    closed: bool,
    /// Files answered, by library.
    answered: BTreeMap<Library, Answered>,
}

/// The files that one library has decoded, and the time that it took.
#[derive(Clone, Debug, Default)]
struct Answered {
    /// Number of files, by format.
    files: BTreeMap<&'static str, u64>,
    spent: Duration,
}

impl FallbackDecoder for Queue {
    fn decode(&self, request: program::Request) {
        let mut inner = lock(&self.inner);
        if inner.closed {
            drop(inner); // first: dropping the request completes its sample
            return;
        }
        inner.waiting.push_back(request);
        drop(inner);
        self.came.notify_one();
    }
}

impl Queue {
    /// Waits for the next request; None once the queue is closed.
    fn next(&self) -> Option<program::Request> {
        let mut inner = lock(&self.inner);
        loop {
            if inner.closed {
                return None;
            }
            if let Some(request) = inner.waiting.pop_front() {
                return Some(request);
            }
            inner = wait(&self.came, inner);
        }
    }

    /// Lets another thread be started.
    fn leave(&self, number: u64) {
        let mut inner = lock(&self.inner);
        if inner.server == Some(number) {
            inner.server = None;
        }
    }

    fn note(&self, library: Library, format: Option<Format>, spent: Duration) {
        let mut inner = lock(&self.inner);
        let answered = inner.answered.entry(library).or_default();
        let name = format.map_or("unknown", Format::name);
        *answered.files.entry(name).or_default() += 1;
        answered.spent += spent;
    }
}

/// A stream's queue, and the function that starts the answering thread.
pub(super) struct RequestQueue {
    pub(super) queue: Arc<Queue>,
    start: Py<PyAny>,
}

impl RequestQueue {
    pub(super) fn new(start: Py<PyAny>) -> RequestQueue {
        RequestQueue {
            queue: Arc::default(),
            start,
        }
    }

    /// Returns true if requests wait while no thread answers.
    pub(super) fn is_unserved(&self) -> bool {
        lock(&self.queue.inner).server.is_none()
    }

    /// Starts the thread if requests wait for one.
    pub(super) fn serve(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner = lock(&self.queue.inner);
        if inner.server.is_some() || inner.closed || inner.waiting.is_empty() {
            return Ok(());
        }
        inner.servers += 1;
        let number = inner.servers;
        inner.server = Some(number);
        let why = inner.waiting[0].refused().error.to_string();
        drop(inner);
        let requests = Requests {
            queue: Uninherited::new(self.queue.clone()),
            number,
        };
        let started = self.start.call1(py, (requests, why));
        if started.is_err() {
            self.queue.leave(number); // an exception may hold the requests
        }
        started.map(drop)
    }

    /// Returns the time spent on answers.
    pub(super) fn spent(&self) -> Duration {
        let inner = lock(&self.queue.inner);
        inner.answered.values().map(|answered| answered.spent).sum()
    }

    /// Adds the answers to a stream's counters.
    pub(super) fn count(&self, counters: &Bound<'_, PyDict>) -> PyResult<()> {
        let inner = lock(&self.queue.inner);
        let mut answered = inner.answered.clone();
        drop(inner);
        for library in [Library::Pillow, Library::Torchvision] {
            let Answered { files, spent } = answered.remove(&library).unwrap_or_default();
            counters.set_item(format!("{}_fallbacks", library.name()), files)?;
            counters.set_item(
                format!("{}_fallback_s", library.name()),
                spent.as_secs_f64(),
            )?;
        }
        Ok(())
    }

    /// Ends the thread; open requests fail. The stream must be cancelled.
    pub(super) fn close(&self) {
        let mut inner = lock(&self.queue.inner);
        inner.closed = true;
        let waiting = mem::take(&mut inner.waiting);
        drop(inner);
        drop(waiting);
        self.queue.came.notify_all();
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Requests {
    queue: Uninherited<Arc<Queue>>,
    /// The number of the thread in the queue.
    number: u64,
}

#[pymethods]
impl Requests {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Request>> {
        let Some(queue) = self.queue.get() else {
            return Ok(None); // a forked child has no samples to complete
        };
        let Some(request) = py.detach(|| queue.next()) else {
            return Ok(None);
        };
        let refused = request.refused();
        Ok(Some(Request {
            source: source(py, refused)?.unbind(),
            mode: refused.reading.name(),
            inner: Uninherited::new(Mutex::new(Some(request))),
            queue: queue.clone(),
            since: Instant::now(),
        }))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.get() {
            queue.leave(self.number);
        }
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Request {
    #[pyo3(get)]
    source: Py<PyAny>,
    #[pyo3(get)]
    mode: String,
    /// None once answered.
    inner: Uninherited<Mutex<Option<program::Request>>>,
    queue: Arc<Queue>,
    since: Instant,
}

#[pymethods]
impl Request {
    fn answer(
        &self,
        py: Python<'_>,
        pixels: &Bound<'_, PyBytes>,
        shape: (usize, usize, usize),
    ) -> PyResult<()> {
        let request = self.take()?;
        let pixels = pixels.as_bytes();
        py.detach(|| {
            let answer = frame(request.refused(), pixels, shape);
            self.complete(request, answer);
        });
        Ok(())
    }

    #[pyo3(signature = (error, fault="fatal"))]
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyBaseException>, fault: &str) -> PyResult<()> {
        let error = Error::Fallback {
            source: Box::new(Raised(PyErr::from_value(error.into_any()))),
            fault: fault_named(fault)?,
        };
        let request = self.take()?;
        py.detach(|| self.complete(request, Err(error)));
        Ok(())
    }
}

/// Returns what an exception says about its sample.
fn fault_named(name: &str) -> PyResult<Fault> {
    let reasons = [
        Reason::Missing,
        Reason::Decode,
        Reason::Transform,
        Reason::Exception,
    ];
    match name {
        "fatal" => Ok(Fault::Fatal),
        "passing" => Ok(Fault::Passing),
        "unsupported" => Ok(Fault::Unsupported),
        _ => {
            let reason = reasons.into_iter().find(|reason| reason.name() == name);
            let fault = reason.map(Fault::Bad);
            fault.ok_or_else(|| PyValueError::new_err(format!("no fault is named {name:?}")))
        }
    }
}

impl Request {
    /// Takes the request to answer it.
    fn take(&self) -> PyResult<program::Request> {
        let request = lock(self.inner.here()?).take();
        request.ok_or_else(|| PyValueError::new_err("the request was answered already"))
    }

    /// Counts first, so that a consumer that has the batch finds its files counted.
    fn complete(&self, request: program::Request, answer: crate::Result<Frame>) {
        let refused = request.refused();
        self.queue.note(
            refused.reading.library,
            refused.format,
            self.since.elapsed(),
        );
        request.answer(answer);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let inner = self.inner.get().and_then(|inner| lock(inner).take());
        if inner.is_some() {
            Python::try_attach(|py| py.detach(|| drop(inner)));
        }
    }
}
