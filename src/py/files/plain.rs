//! `_lib.Plain`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::blobs;
use crate::format::{Integer, Utf8};
use crate::program::{Content, Leaf, Record};
use crate::py::column::Column;

/// Files with one value each: bytes, a text, a number in digits.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Plain;

#[pymethods]
impl Plain {
    #[new]
    fn new(source: &Bound<'_, PyAny>, what: &str) -> PyResult<PyClassInitializer<Plain>> {
        let content = match what {
            "bytes" => Content::Bytes,
            "text" => Content::Text(Box::new(Utf8)),
            "integer" => Content::Array(Box::new(Integer)),
            _ => return Err(PyValueError::new_err(format!("unknown content {what:?}"))),
        };
        let record = Record::new(blobs(source)?, content);
        let column = Column::over(Leaf::Record(record), [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Plain))
    }
}
