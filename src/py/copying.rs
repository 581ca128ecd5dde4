//! Copies tensors to others, on pool threads.

use pyo3::prelude::*;

use super::tensor;
use crate::copying;

/// A copy in progress. Keeps the tensors alive.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Copying {
    copying: copying::Copying, // dropped first: the copy must end before the tensors go
    _tensors: (Vec<Py<PyAny>>, Vec<Py<PyAny>>),
}

#[pymethods]
impl Copying {
    #[new]
    fn new(targets: Vec<Bound<'_, PyAny>>, sources: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let transfer = tensor::transfer(&targets, &sources)?;
        let kept =
            |tensors: Vec<Bound<'_, PyAny>>| tensors.into_iter().map(Bound::unbind).collect();
        Ok(Self {
            copying: copying::Copying::start(transfer),
            _tensors: (kept(targets), kept(sources)),
        })
    }

    fn wait(&self, py: Python<'_>) {
        py.detach(|| self.copying.wait());
    }
}
