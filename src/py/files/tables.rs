//! `_lib.Lines`, `_lib.Jsonl` and `_lib.ParquetFiles`: columns of tables.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{tell, tick};
use crate::column::{self, Kind};
use crate::format::{self, Element, JsonColumn, JsonLists};
use crate::memory::Dtype;
use crate::parquet;
use crate::program::Contents;
use crate::py::column::Column;
use crate::sync::Arc;
use crate::{Error, Result};

/// The lines of files.
#[pyclass(frozen, module = "fastload._lib")]
pub(in crate::py) struct Lines {
    core: Arc<column::Lines>,
}

#[pymethods]
impl Lines {
    #[new]
    #[pyo3(signature = (paths, stored, progress=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<OsString>,
        stored: Vec<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Lines> {
        let paths = paths.into_iter().collect();
        let mut tell = tell(progress.as_ref());
        let lines = py.detach(|| column::Lines::open(paths, &stored, &mut tell))?;
        let core = Arc::new(lines);
        Ok(Lines { core })
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }
}

/// Fields of JSON lines.
#[pyclass(frozen, module = "fastload._lib")]
pub(in crate::py) struct Jsonl {
    core: Arc<format::Jsonl>,
    elements: Vec<Element>,
}

#[pymethods]
impl Jsonl {
    #[new]
    fn new(
        py: Python<'_>,
        lines: &Bound<'_, Lines>,
        fields: Vec<Vec<String>>,
        dtypes: Vec<Option<String>>,
    ) -> PyResult<Jsonl> {
        let core = Arc::new(format::Jsonl::new(lines.get().core.clone(), &fields));
        let wanted = dtypes
            .iter()
            .map(|name| name.as_deref().map(wanted).transpose());
        let wanted: Vec<Option<Element>> = wanted.collect::<PyResult<_>>()?;
        let elements = py.detach(|| {
            let each = wanted.iter().enumerate();
            let each = each.map(|(field, wanted)| core.element(field, *wanted));
            each.collect::<Result<Vec<_>>>()
        })?;
        Ok(Jsonl { core, elements })
    }

    fn column(&self, py: Python<'_>, place: usize) -> PyResult<(Column, &'static str)> {
        let element = *self.elements.get(place).ok_or(Error::Index {
            index: place.cast_signed() as i64,
            len: self.elements.len(),
        })?;
        let source = self.core.clone();
        Ok(match element {
            Element::Number(dtype) => {
                let column = JsonColumn::new(source, place, Some(dtype));
                (Column::alone(column), "tensor")
            }
            Element::Text => (Column::alone(JsonColumn::new(source, place, None)), "text"),
            Element::List(dtype) => {
                let (lists, blobs) = py.detach(|| JsonLists::new(source, place, dtype))?;
                (Column::alone(Contents::arrays(blobs, lists)), "tensor")
            }
        })
    }
}

/// Returns the type that `name` asks for: text, or numbers that JSON can express.
fn wanted(name: &str) -> PyResult<Element> {
    use Dtype::{Bool, Float32, Float64, Int8, Int16, Int32, Int64, UInt8};
    if name == "text" {
        return Ok(Element::Text);
    }
    match Dtype::from_name(name) {
        Some(dtype @ (Bool | UInt8 | Int8 | Int16 | Int32 | Int64 | Float32 | Float64)) => {
            Ok(Element::Number(dtype))
        }
        _ => Err(PyTypeError::new_err(format!(
            "a column of JSON lines cannot be of dtype {name}: bool, uint8, int8 to int64, float32, \
             float64 or str"
        ))),
    }
}

/// Parquet files, open, with what is decoded of them.
#[pyclass(frozen, weakref, module = "fastload._lib")]
pub(in crate::py) struct ParquetFiles(Arc<parquet::Tables>);

#[pymethods]
impl ParquetFiles {
    #[new]
    #[pyo3(signature = (paths, cache_bytes, progress=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<OsString>,
        cache_bytes: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ParquetFiles> {
        let mut tick = tick(progress.as_ref(), paths.len());
        let paths = paths.into_iter().collect();
        let tables = py.detach(|| parquet::Tables::open(paths, cache_bytes, &mut tick))?;
        Ok(ParquetFiles(Arc::new(tables)))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn column(&self, py: Python<'_>, column: &str) -> PyResult<(Column, &'static str)> {
        let table = py.detach(|| parquet::Parquet::new(self.0.clone(), column))?;
        let column = Column::alone(table);
        let form = match column.core.layout().kind {
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            _ => "tensor",
        };
        Ok((column, form))
    }
}
