//! Columns over files, as Python makes them.

mod arrays;
mod audio;
mod blobs;
mod flat;
mod jsonl;
mod parquet;
mod tar;
mod tick;

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::{Error, whole_file};

pub(super) use blobs::{Blobs, blobs, no_bytes};

/// Adds the classes and functions of this module to the extension module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<audio::Audio>()?;
    module.add_class::<Blobs>()?;
    module.add_class::<tar::Tar>()?;
    module.add_class::<jsonl::Lines>()?;
    module.add_class::<jsonl::Jsonl>()?;
    module.add_class::<parquet::ParquetFiles>()?;
    module.add_function(wrap_pyfunction!(arrays::npy, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::npz, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::pt, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::plain, module)?)?;
    module.add_function(wrap_pyfunction!(flat::tokens, module)?)?;
    module.add_function(wrap_pyfunction!(flat::records, module)?)?;
    module.add_function(wrap_pyfunction!(flat::megatron, module)?)?;
    module.add_function(wrap_pyfunction!(write_file, module)?)
}

/// Writes a file, completely or not at all.
#[pyfunction]
fn write_file(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    let written = py.detach(|| whole_file::write(&path, data));
    Ok(written.map_err(|source| Error::read(&path, source))?)
}
