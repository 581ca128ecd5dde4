//! `_lib.Npz`.

use pyo3::prelude::*;

use super::blobs;
use super::tick::tick;
use crate::format;
use crate::format::RowRange;
use crate::program::Contents;
use crate::py::column::Column;
use crate::sync::Arc;

/// Arrays in `.npz` files.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Npz;

#[pymethods]
impl Npz {
    #[new]
    #[pyo3(signature = (source, key, rows, progress=None))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        key: &str,
        rows: Vec<(Option<i64>, Option<i64>)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Npz>> {
        let blobs = blobs(source)?;
        let rows = rows
            .into_iter()
            .map(|(start, stop)| RowRange { start, stop });
        let rows = rows.collect();
        let mut tick = tick(progress.as_ref(), blobs.len());
        let (npz, blobs) = py.detach(|| format::Npz::open(&blobs, key, rows, &mut tick))?;
        let column = Column::over(Arc::new(Contents::arrays(blobs, npz)), [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Npz))
    }
}
