//! `_lib.Plain`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::blobs;
use crate::column;
use crate::format::{Integer, Utf8};
use crate::program::{Arrays, Contents, Texts};
use crate::py::column::Column;
use crate::sync::Arc;

/// Files with one value each: bytes, a text, a number in digits.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Plain;

#[pymethods]
impl Plain {
    #[new]
    fn new(source: &Bound<'_, PyAny>, what: &str) -> PyResult<PyClassInitializer<Plain>> {
        let blobs = blobs(source)?;
        let core: Arc<dyn column::Column> = match what {
            "bytes" => Arc::new(Contents::new(blobs)),
            "text" => Arc::new(Texts::new(blobs, Utf8)),
            "integer" => Arc::new(Arrays::new(blobs, Integer)),
            _ => return Err(PyValueError::new_err(format!("unknown content {what:?}"))),
        };
        let column = Column::over(core, [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Plain))
    }
}
