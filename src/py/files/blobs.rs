//! Encoded bytes, as Python passes them.

use std::ffi::OsString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::column;
use crate::py::column::Ragged;

/// Encoded bytes of samples that share files.
#[pyclass(frozen, module = "fastload._lib")]
pub(in crate::py) struct Blobs {
    pub(in crate::py) core: column::Blobs,
}

#[pymethods]
impl Blobs {
    fn __len__(&self) -> usize {
        self.core.len()
    }
}

/// Takes file paths, the bytes of such files, or ranges of larger files.
pub(in crate::py) fn blobs(source: &Bound<'_, PyAny>) -> PyResult<column::Blobs> {
    if let Ok(buffer) = source.cast::<Ragged>() {
        return column::Blobs::buffer(buffer.get().core.clone()).ok_or_else(no_bytes);
    }
    if let Ok(blobs) = source.cast::<Blobs>() {
        return Ok(blobs.get().core.clone());
    }
    let paths: Vec<OsString> = source.extract()?;
    Ok(column::Blobs::new(paths.into_iter().collect()))
}

/// Returns the error for columns that are not single bytes.
pub(in crate::py) fn no_bytes() -> PyErr {
    PyValueError::new_err("text and encoded files must be ragged rows of one uint8, without gaps")
}
