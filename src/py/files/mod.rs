//! Columns over files, as Python makes them: one format per file.

mod audio;
mod blobs;
mod jsonl;
mod npy;
mod npz;
mod parquet;
mod plain;
mod pt;
mod records;
mod tar;
mod tick;
mod tokens;

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::{Error, whole_file};

pub(super) use blobs::{Blobs, blobs, no_bytes};

/// Adds the classes of this module to the extension module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<audio::Audio>()?;
    module.add_class::<Blobs>()?;
    module.add_class::<npy::Npy>()?;
    module.add_class::<npz::Npz>()?;
    module.add_class::<pt::Pt>()?;
    module.add_class::<plain::Plain>()?;
    module.add_class::<tar::Tar>()?;
    module.add_class::<jsonl::Lines>()?;
    module.add_class::<jsonl::Jsonl>()?;
    module.add_class::<parquet::Parquet>()?;
    module.add_class::<parquet::ParquetFiles>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<tokens::Megatron>()?;
    module.add_class::<tokens::Tokens>()?;
    module.add_function(wrap_pyfunction!(write_file, module)?)
}

/// Writes a file, completely or not at all.
#[pyfunction]
fn write_file(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    let written = py.detach(|| whole_file::write(&path, data));
    Ok(written.map_err(|source| Error::read(&path, source))?)
}
