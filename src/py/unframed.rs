//! Calls Python functions without a frame of this library in the traceback: users see what torch would show
//! them.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::sync::atomic::{AtomicU32, Ordering};

/// A dataset whose samples a function makes. See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Unframed {
    made: Py<PyAny>,
    make: Py<PyAny>,
    /// Number of next values that `make` makes by itself.
    alone: AtomicU32,
    lists: Option<Py<Unframed>>,
}

impl Unframed {
    fn over(made: Py<PyAny>, make: Py<PyAny>, lists: Option<Py<Unframed>>) -> Unframed {
        let alone = AtomicU32::new(0);
        Unframed {
            made,
            make,
            alone,
            lists,
        }
    }
}

#[pymethods]
impl Unframed {
    #[new]
    #[pyo3(signature = (made, make, lists=None))]
    fn new(
        py: Python<'_>,
        made: Py<PyAny>,
        make: Py<PyAny>,
        lists: Option<Py<PyAny>>,
    ) -> PyResult<Unframed> {
        let lists = lists.map(|make| Py::new(py, Unframed::over(made.clone_ref(py), make, None)));
        let lists = lists.transpose()?;
        Ok(Unframed::over(made, make, lists))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.made)?;
        visit.call(&self.make)?;
        visit.call(&self.lists)
    }

    #[getter]
    fn __getitems__(&self, py: Python<'_>) -> Option<Py<Unframed>> {
        self.lists.as_ref().map(|lists| lists.clone_ref(py))
    }

    fn __getitem__(&self, py: Python<'_>, index: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.__call__(py, index)
    }

    fn __call__(&self, py: Python<'_>, index: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let alone = self.alone.load(Ordering::Relaxed);
        if alone > 0 {
            self.alone.store(alone - 1, Ordering::Relaxed);
            return self.make.call1(py, (index,));
        }
        let (value, error, alone): (Py<PyAny>, Option<Bound<'_, PyAny>>, u32) =
            self.made.call1(py, (&self.make, index))?.extract(py)?;
        self.alone.store(alone, Ordering::Relaxed);
        match error {
            None => Ok(value),
            Some(error) => Err(PyErr::from_value(error)),
        }
    }
}
