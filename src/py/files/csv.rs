//! `_lib.Csv`.

use std::collections::HashMap;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::tick::tell;
use crate::Error;
use crate::format::{self, Dialect, Stored, Type};
use crate::memory::Dtype;
use crate::program::Leaf;
use crate::py::column::Column;
use crate::py::enter::Enter;

/// Columns of a table that was text.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Csv {
    names: Vec<String>,
    columns: Vec<(Py<Column>, &'static str)>,
}

#[pymethods]
impl Csv {
    #[new]
    #[allow(clippy::too_many_arguments)] // the boundary's contract
    #[pyo3(signature = (path, columns, dtypes, everywhere, dialect, header, progress=None))]
    fn new(
        py: Python<'_>,
        path: &str,
        columns: Option<Vec<String>>,
        dtypes: HashMap<String, String>,
        everywhere: Option<&str>,
        dialect: (String, Option<String>, Vec<String>),
        header: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Csv> {
        let (delimiter, quote, missing) = dialect;
        let dialect = Dialect {
            delimiter: byte(&delimiter)?,
            quote: quote.as_deref().map(byte).transpose()?,
            missing: missing
                .into_iter()
                .map(|text| text.into_bytes().into())
                .collect(),
        };
        if dialect.quote == Some(dialect.delimiter) {
            let message = format!("{delimiter:?} cannot be both delimiter and quote");
            return Err(PyValueError::new_err(message));
        }
        let types = dtypes
            .into_iter()
            .map(|(name, dtype)| Ok((name, wanted(&dtype)?)));
        let types: HashMap<String, Type> = types.collect::<PyResult<_>>()?;
        let everywhere = everywhere.map(wanted).transpose()?;
        let mut tell = tell(progress.as_ref());
        let csv = py.enter(|| {
            let wanted = |name: &str| types.get(name).copied().or(everywhere);
            format::Csv::open(
                path,
                dialect,
                header,
                columns.as_deref(),
                &wanted,
                &mut tell,
            )
        })?;
        let (names, columns) = csv.into_parts();
        let columns = columns.into_iter().map(|stored| {
            let (leaf, form) = match stored {
                Stored::Numbers(rows) => (Leaf::Rows(rows), "tensor"),
                Stored::Text(texts) => (Leaf::Table(Box::new(texts)), "text"),
            };
            Ok((Py::new(py, Column::alone(leaf))?, form))
        });
        let columns = columns.collect::<PyResult<_>>()?;
        Ok(Csv { names, columns })
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn column(&self, py: Python<'_>, place: usize) -> PyResult<(Py<Column>, &'static str)> {
        let len = self.columns.len();
        let index = place.cast_signed() as i64;
        let (column, form) = self.columns.get(place).ok_or(Error::Index { index, len })?;
        Ok((column.clone_ref(py), form))
    }
}

fn byte(text: &str) -> PyResult<u8> {
    match text.as_bytes() {
        [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(PyValueError::new_err(format!(
            "delimiter and quote are one ASCII character each, and no end of a line; found {text:?}"
        ))),
    }
}

/// What values are to be: text, or numbers that a field can say.
fn wanted(name: &str) -> PyResult<Type> {
    use Dtype::{Bool, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt64};
    if name == "text" {
        return Ok(Type::Text);
    }
    match Dtype::from_name(name) {
        Some(
            dtype @ (Bool | UInt8 | UInt64 | Int8 | Int16 | Int32 | Int64 | Float32 | Float64),
        ) => Ok(Type::Number(dtype)),
        _ => Err(PyTypeError::new_err(format!(
            "a column of a table cannot be of dtype {name}: bool, uint8, uint64, int8 to int64, float32, \
             float64 or str"
        ))),
    }
}
