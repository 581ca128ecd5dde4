//! `_lib.Pt`.

use pyo3::prelude::*;

use super::blobs;
use super::tick::tick;
use crate::format;
use crate::program::Contents;
use crate::py::column::Column;
use crate::sync::Arc;

/// Tensors in files of `torch.save`.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Pt;

#[pymethods]
impl Pt {
    #[new]
    #[pyo3(signature = (source, key=None, progress=None))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        key: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Pt>> {
        let blobs = blobs(source)?;
        let mut tick = tick(progress.as_ref(), blobs.len());
        let (pt, blobs) = py.detach(|| format::Pt::open(&blobs, key, &mut tick))?;
        let column = Column::over(Arc::new(Contents::arrays(blobs, pt)), [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Pt))
    }
}
