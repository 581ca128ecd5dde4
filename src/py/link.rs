//! The link between a process and its workers, as Python has it: messages are bytes and tensors.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};

use super::dlpack;
use super::interrupts::check_interrupts;
use crate::link::{self, Event, Received};
use crate::memory::{self, ArenaSlot, Dtype, Owner, lease};
use crate::sync::{Mutex, lock};

/// Longest time between two checks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// An event of a worker: its number, and a payload with its parts, or None if the worker is gone.
type Came = (usize, Option<(Py<PyBytes>, Vec<Py<PyAny>>)>);

/// See the stub.
#[pyfunction]
pub(super) fn make_file(name: &str) -> PyResult<RawFd> {
    Ok(memory::make_file(name)?.into_raw_fd())
}

/// The parent's ends of the links to an iterator's workers.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Links(link::Links);

#[pymethods]
impl Links {
    #[new]
    fn new() -> Self {
        Self(link::Links::new())
    }

    fn open(&self) -> PyResult<(usize, RawFd)> {
        let (number, end) = self.0.open()?;
        Ok((number, end.into_raw_fd()))
    }

    fn watch(&self, number: usize, sentinel: RawFd) {
        // SAFETY: the caller gives the descriptor away, and nothing else owns it.
        let sentinel = unsafe { OwnedFd::from_raw_fd(sentinel) };
        self.0.watch(number, sentinel);
    }

    fn send(&self, number: usize, message: &[u8]) -> PyResult<()> {
        Ok(self.0.send(number, message)?)
    }

    #[pyo3(signature = (timeout_s=None))]
    fn receive(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Came>> {
        let end = timeout_s.map(|timeout_s| Instant::now() + seconds(timeout_s));
        loop {
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
            match py.detach(|| self.0.receive(left.min(SLICE)))? {
                None if left.is_zero() => return Ok(None),
                None => check_interrupts(py)?,
                Some(Event::Gone(number)) => return Ok(Some((number, None))),
                Some(Event::Message(number, message)) => {
                    let payload = PyBytes::new(py, message.payload.bytes()).unbind();
                    let parts = message.parts.into_iter().map(|part| tensor(py, part));
                    return Ok(Some((
                        number,
                        Some((payload, parts.collect::<PyResult<_>>()?)),
                    )));
                }
            }
        }
    }

    fn ready(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.0.ready())?)
    }

    fn release(&self, py: Python<'_>, number: usize) {
        py.detach(|| self.0.release(number));
    }

    fn finish(&self) {
        self.0.finish();
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.stats();
        [
            ("arenas", stats.arenas),
            ("arena_bytes", stats.arena_bytes),
            ("held_bytes", stats.held_bytes),
        ]
        .into_py_dict(py)
    }
}

/// A worker's end of the link to its parent.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct WorkerLink(link::Worker);

#[pymethods]
impl WorkerLink {
    #[new]
    fn new(descriptor: RawFd) -> Self {
        // SAFETY: the descriptor is the one that `Links.open` gave away; nothing else in this process owns
        // it.
        let end = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Self(link::Worker::new(end))
    }

    fn watch(&self) -> PyResult<()> {
        use std::os::fd::AsFd;
        Ok(link::watch(self.0.as_fd())?)
    }

    fn receive(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Py<PyBytes>>> {
        match py.detach(|| self.0.receive(seconds(timeout_s), &mut check_signals))? {
            Received::Message(message) => Ok(Some(PyBytes::new(py, &message).unbind())),
            Received::TimedOut => Ok(None),
            Received::End => Err(PyEOFError::new_err(
                "the parent of this worker has finished",
            )),
        }
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn take(&self, py: Python<'_>, len: usize) -> PyResult<Option<Py<PyAny>>> {
        let slot = py.detach(|| self.0.take(len, &mut check_signals))?;
        slot.map(|slot| tensor(py, slot)).transpose()
    }

    fn part(&self, address: usize, len: usize) -> Option<Part> {
        let slot = self.0.share(address, len)?;
        Some(Part(Mutex::new(Some(slot))))
    }

    fn send(&self, py: Python<'_>, payload: &[u8], parts: Vec<Py<Part>>) -> PyResult<()> {
        let parts = parts
            .iter()
            .filter_map(|part| lock(&part.get().0).take())
            .collect();
        Ok(py.detach(|| self.0.send(parts, payload, &mut check_signals))?)
    }

    #[pyo3(signature = (idle_s=0.0))]
    fn trim(&self, py: Python<'_>, idle_s: f64) -> usize {
        py.detach(|| self.0.trim(seconds(idle_s)))
    }
}

/// Some bytes of a slot, to be sent to the parent.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Part(Mutex<Option<ArenaSlot>>);

/// Copies bytes to a tensor.
#[pyfunction]
pub(super) fn own(py: Python<'_>, data: &[u8]) -> PyResult<Py<PyAny>> {
    let mut memory = lease(data.len())?;
    memory.copy_from_slice(data);
    dlpack::tensor(py, memory, &[data.len()], Dtype::UInt8)
}

fn tensor(py: Python<'_>, slot: ArenaSlot) -> PyResult<Py<PyAny>> {
    let len = slot.len();
    dlpack::tensor(py, slot, &[len], Dtype::UInt8)
}

#[allow(clippy::redundant_closure_for_method_calls)] // the method has one lifetime only
fn check_signals() -> crate::Result<()> {
    let checked = Python::try_attach(|py| py.check_signals());
    Ok(checked.transpose().map(drop)?)
}

/// Longer than anything waits, and no clock overflows.
const YEAR_S: f64 = 365.0 * 86_400.0;

/// Converts seconds to a duration of a year at most; negative and NaN become 0.
fn seconds(time_s: f64) -> Duration {
    Duration::try_from_secs_f64(if time_s > YEAR_S { YEAR_S } else { time_s }).unwrap_or_default()
}
