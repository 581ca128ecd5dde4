//! `_lib.ParquetFiles`.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::tick::tick;
use crate::column::Kind;
use crate::parquet;
use crate::py::column::Column;
use crate::sync::Arc;

/// Parquet files, open, with what is decoded of them.
#[pyclass(frozen, weakref, module = "fastload._lib")]
pub(super) struct ParquetFiles(Arc<parquet::Tables>);

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
