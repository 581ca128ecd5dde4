//! Iterators whose steps Ctrl-C does not divide.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::interrupts;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Adds the class and the functions to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WholeSteps>()?;
    module.add_function(wrap_pyfunction!(interruptibly, module)?)?;
    module.add_function(wrap_pyfunction!(check_interrupts, module)?)
}

/// See the stub.
#[pyclass(frozen, subclass, module = "fastload._lib")]
pub(super) struct WholeSteps {
    is_torn: AtomicBool,
}

#[pymethods]
impl WholeSteps {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> WholeSteps {
        interrupts::watch();
        WholeSteps {
            is_torn: AtomicBool::new(false),
        }
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().is_torn.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "Ctrl-C, pressed twice, has ended this iterator in the middle of a batch: iterate the loader again",
            ));
        }
        let hold = interrupts::hold();
        py.check_signals()?; // what came before
        let made = slf.call_method0(intern!(py, "_step"));
        drop(hold);
        if interrupts::is_torn() && made.is_err() {
            slf.get().is_torn.store(true, Ordering::Relaxed);
        }
        made
    }
}

/// See the stub.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
fn interruptibly<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    interrupts::interruptibly(|| function.call1(arguments))
}

/// See the stub.
#[pyfunction]
pub(super) fn check_interrupts(py: Python<'_>) -> PyResult<()> {
    interrupts::release_one();
    py.check_signals()
}
