//! Iterators whose steps Ctrl-C does not divide, and the wait in a step, where it is raised: detached, in slices, with
//! checks for signals and for the pool in between.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::error::quietly;
use super::foreign::RequestQueue;
use super::steps::StepClocks;
use crate::fork::Uninherited;
use crate::program::{Finished, Run};
use crate::stream::{Ready, Stream, Taken};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};
use crate::{Error, interrupts};

/// Longest time between two checks.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// First interval at which to check for files that a thread must be started for; it doubles.
const LOOK: Duration = Duration::from_millis(1);

/// See the stub.
#[pyclass(frozen, subclass, module = "fastload._lib")]
pub(super) struct WholeSteps {
    is_torn: AtomicBool,
    clocks: Mutex<Option<Py<StepClocks>>>,
}

#[pymethods]
impl WholeSteps {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> WholeSteps {
        interrupts::watch();
        WholeSteps {
            is_torn: AtomicBool::new(false),
            clocks: Mutex::new(None),
        }
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().is_torn.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "Ctrl-C, pressed twice, has ended this iterator in the middle of a batch: iterate the loader again",
            ));
        }
        let clocks = lock(&slf.get().clocks)
            .as_ref()
            .map(|clocks| clocks.clone_ref(py));
        let hold = interrupts::hold();
        py.check_signals()?; // what came before
        let made = match clocks {
            None => slf.call_method0(intern!(py, "_step")),
            Some(clocks) => recorded(slf, clocks.bind(py)),
        };
        drop(hold);
        if made.is_err() && interrupts::is_torn() {
            slf.get().is_torn.store(true, Ordering::Relaxed);
        }
        made
    }

    #[pyo3(name = "_record_steps")]
    fn record_steps(&self, clocks: Option<Py<StepClocks>>) {
        let before = std::mem::replace(&mut *lock(&self.clocks), clocks);
        drop(before); // which may run Python, without the lock
    }

    /// Visits the clocks, for the garbage collector: they may refer to what holds the iterator.
    #[allow(clippy::needless_pass_by_value)] // PyO3's signature
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.clocks.try_lock() {
            Ok(clocks) => visit.call(clocks.as_ref()),
            Err(_) => Ok(()), // a thread that was stopped holds it: what it refers to counts as used
        }
    }

    fn __clear__(&self) {
        self.record_steps(None);
    }
}

/// Takes a step; notes when it begins and ends.
fn recorded<'py>(
    iterator: &Bound<'py, WholeSteps>,
    clocks: &Bound<'py, StepClocks>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = iterator.py();
    StepClocks::asked(clocks)?;
    match iterator.call_method0(intern!(py, "_step")) {
        Ok(batch) => StepClocks::returned(clocks, &batch).map(|()| batch),
        Err(error) => {
            clocks.call_method1(intern!(py, "failed"), (error.value(py),))?;
            Err(error)
        }
    }
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub(super) fn interruptibly<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    interrupts::interruptibly(|| function.call1(arguments))
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub(super) fn uninterruptibly<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let _hold = interrupts::hold();
    function.py().check_signals()?; // what came before
    function.call1(arguments)
}

/// See the stub.
#[pyfunction]
pub(super) fn check_interrupts(py: Python<'_>) -> PyResult<()> {
    interrupts::release_one();
    py.check_signals()
}

/// Takes a batch; if none is ready, waits for it detached, checking for signals. None if no batch is in flight.
pub(super) fn take_batch(
    py: Python<'_>,
    core: &Uninherited<Stream<Run>>,
    requests: Option<&RequestQueue>,
    timeout_s: f64,
) -> PyResult<Option<Ready<Finished>>> {
    match core.here()?.take(Duration::ZERO) {
        Taken::Ready(ready) => return Ok(Some(ready)),
        Taken::Exhausted => return Ok(None),
        Taken::Waiting => {}
    }
    let begun = Instant::now();
    let mut slices = LOOK;
    loop {
        let core = core.here()?; // a signal handler may fork
        let mut slice = SLICE;
        if let Some(requests) = requests.filter(|requests| requests.is_unserved()) {
            requests.serve(py)?;
            slice = slices;
            slices = SLICE.min(2 * slices);
        }
        if timeout_s > 0.0 {
            let left = timeout_s - begun.elapsed().as_secs_f64();
            if left <= 0.0 {
                let (fetching, computing) = core.activity();
                return Err(Error::Timeout {
                    timeout_s,
                    fetching,
                    computing,
                }
                .into());
            }
            slice = Duration::from_secs_f64(left.min(slice.as_secs_f64()));
        }
        match py.detach(|| core.take(slice)) {
            Taken::Ready(ready) => return Ok(Some(ready)),
            Taken::Exhausted => return Ok(None),
            Taken::Waiting => {
                check_interrupts(py)?;
                core.check().map_err(|error| quietly(py, error))?;
            }
        }
    }
}
