//! Calls Python functions without a frame of this library in the traceback: users see what torch would show
//! them.

use pyo3::prelude::*;

/// A dataset whose samples a function makes. See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Unframed {
    made: Py<PyAny>,
    lists: Option<Py<Unframed>>,
}

#[pymethods]
impl Unframed {
    #[new]
    #[pyo3(signature = (made, lists=None))]
    fn new(py: Python<'_>, made: Py<PyAny>, lists: Option<Py<PyAny>>) -> PyResult<Unframed> {
        let lists = lists.map(|made| Py::new(py, Unframed { made, lists: None }));
        let lists = lists.transpose()?;
        Ok(Unframed { made, lists })
    }

    #[getter]
    fn __getitems__(&self, py: Python<'_>) -> Option<Py<Unframed>> {
        self.lists.as_ref().map(|lists| lists.clone_ref(py))
    }

    fn __getitem__(&self, py: Python<'_>, index: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.__call__(py, index)
    }

    fn __call__(&self, py: Python<'_>, index: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let (value, error): (Py<PyAny>, Option<Bound<'_, PyAny>>) =
            self.made.call1(py, (index,))?.extract(py)?;
        match error {
            None => Ok(value),
            Some(error) => Err(PyErr::from_value(error)),
        }
    }
}
