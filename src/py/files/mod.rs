//! Columns over files, as Python makes them.

pub(super) mod arrays;
pub(super) mod flat;
pub(super) mod tables;
pub(super) mod tar;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::column::Ragged;
use crate::{Error, Result, column, whole_file};

/// Encoded bytes of samples that share files.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Blobs {
    pub(super) core: column::Blobs,
}

#[pymethods]
impl Blobs {
    fn __len__(&self) -> usize {
        self.core.len()
    }
}

/// Takes file paths, the bytes of such files, or ranges of larger files.
pub(super) fn blobs(source: &Bound<'_, PyAny>) -> PyResult<column::Blobs> {
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
pub(super) fn no_bytes() -> PyErr {
    PyValueError::new_err("text and encoded files must be ragged rows of one uint8, without gaps")
}

/// Returns a callback for the caller's detached thread, while it reads many files. It takes the number of finished
/// files of `total`, checks for signals, and calls `progress` with both.
fn tick(progress: Option<&Py<PyAny>>, total: usize) -> impl FnMut(usize) -> Result<()> + Send {
    let mut tell = tell(progress);
    move |done| tell(done, total)
}

/// Returns the same for a total that is known only later: the callback takes both numbers.
fn tell(progress: Option<&Py<PyAny>>) -> impl FnMut(usize, usize) -> Result<()> + Send {
    move |done, total| {
        let called = Python::try_attach(|py| {
            py.check_signals()?;
            match progress {
                Some(progress) => progress.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        called.transpose()?;
        Ok(())
    }
}

/// Writes a file, completely or not at all.
#[pyfunction]
pub(super) fn write_file(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    let written = py.detach(|| whole_file::write(&path, data));
    Ok(written.map_err(|source| Error::read(&path, source))?)
}
