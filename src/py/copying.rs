//! Copying tensors into others, on the threads of the pool.

use pyo3::prelude::*;

use super::tensor;
use crate::copying;

/// A copy in the making. The tensors are kept until it is gone.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Copying {
    copying: copying::Copying, // first, for it is dropped first
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
