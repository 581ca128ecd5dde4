//! Columns of files, as Python makes them: one format per file.

mod blobs;
mod npy;
mod plain;
mod tar;
mod tick;

use pyo3::prelude::*;

pub(super) use blobs::{Blobs, blobs, no_bytes};

/// Adds the classes of this module to the extension module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Blobs>()?;
    module.add_class::<npy::Npy>()?;
    module.add_class::<plain::Plain>()?;
    module.add_class::<tar::Tar>()
}
