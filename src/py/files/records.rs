//! `_lib.Records`.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::tokens::no_cast;
use crate::column::{Files, Flat, Strided};
use crate::py::column::{Column, parse_dtype};

/// Records of binary files.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Records;

#[pymethods]
impl Records {
    #[new]
    fn new(
        py: Python<'_>,
        paths: Vec<OsString>,
        dtype: &str,
        out_dtype: &str,
        shape: Vec<usize>,
        of_records: (u64, u64, u64),
    ) -> PyResult<PyClassInitializer<Records>> {
        let (dtype, out_dtype) = (parse_dtype(dtype)?, parse_dtype(out_dtype)?);
        let (stride, start, offset) = of_records;
        let records = py.detach(|| {
            let files = Files::look(paths.into_iter().collect())?;
            let flat = Flat::new(files, dtype, out_dtype);
            flat.map(|flat| Strided::records(flat, &shape, stride, start, offset))
                .transpose()
        })?;
        let records = records.ok_or_else(|| no_cast(dtype, out_dtype))?;
        Ok(PyClassInitializer::from(Column::alone(records)).add_subclass(Records))
    }
}
