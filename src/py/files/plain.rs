//! `_lib.Plain`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::blobs;
use crate::format::Integer;
use crate::program::Contents;
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
        let core = match what {
            "bytes" => Contents::bytes(blobs),
            "text" => Contents::texts(blobs),
            "integer" => Contents::arrays(blobs, Integer),
            _ => return Err(PyValueError::new_err(format!("unknown content {what:?}"))),
        };
        let column = Column::over(Arc::new(core), [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Plain))
    }
}
