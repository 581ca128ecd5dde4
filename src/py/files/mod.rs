//! Columns of files, as Python makes them: one format per file.

mod audio;
mod blobs;
mod csv;
mod jsonl;
mod npy;
mod npz;
mod parquet;
mod plain;
mod pt;
mod tar;
mod tick;
mod tokens;

use pyo3::prelude::*;

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
    module.add_class::<csv::Csv>()?;
    module.add_class::<parquet::Parquet>()?;
    module.add_class::<parquet::ParquetFiles>()?;
    module.add_class::<tokens::Megatron>()?;
    module.add_class::<tokens::Tokens>()
}
