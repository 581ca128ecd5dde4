//! `_lib.tokens`, `_lib.records` and `_lib.megatron`: columns of flat binary files.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::Result;
use crate::column::{Blobs, Documents, Files, Flat, Strided};
use crate::format;
use crate::memory::Dtype;
use crate::py::column::{Column, parse_dtype};

/// Makes a column of windows of files of tokens.
#[pyfunction]
pub(in crate::py) fn tokens(
    py: Python<'_>,
    paths: Vec<OsString>,
    dtype: &str,
    out_dtype: &str,
    length: usize,
    stride: usize,
    offset: u64,
) -> PyResult<Column> {
    let (dtype, out_dtype) = (parse_dtype(dtype)?, parse_dtype(out_dtype)?);
    let sizes = [length, stride].map(|size| size.checked_mul(8).filter(|&bytes| bytes > 0));
    if sizes.contains(&None) {
        return Err(PyValueError::new_err("length and stride are at least 1"));
    }
    strided(py, paths, dtype, out_dtype, |flat| {
        Strided::windows(flat, length, stride, offset)
    })
}

/// Makes a column of records of binary files.
#[pyfunction]
pub(in crate::py) fn records(
    py: Python<'_>,
    paths: Vec<OsString>,
    dtype: &str,
    out_dtype: &str,
    shape: Vec<usize>,
    of_records: (u64, u64, u64),
) -> PyResult<Column> {
    let (dtype, out_dtype) = (parse_dtype(dtype)?, parse_dtype(out_dtype)?);
    let (stride, start, offset) = of_records;
    strided(py, paths, dtype, out_dtype, |flat| {
        Strided::records(flat, &shape, stride, start, offset)
    })
}

/// Makes a column of the samples at equal distances that `make` finds in files.
fn strided(
    py: Python<'_>,
    paths: Vec<OsString>,
    dtype: Dtype,
    out_dtype: Dtype,
    make: impl FnOnce(Flat) -> Result<Strided> + Send,
) -> PyResult<Column> {
    let strided = py.detach(|| {
        let files = Files::look(paths.into_iter().collect())?;
        let flat = Flat::new(files, dtype, out_dtype);
        flat.map(make).transpose()
    })?;
    let strided = strided.ok_or_else(|| no_cast(dtype, out_dtype))?;
    Ok(Column::alone(strided))
}

/// Makes a column of documents of a `.bin` file of tokens that has an `.idx` file.
#[pyfunction]
pub(in crate::py) fn megatron(
    py: Python<'_>,
    tokens: OsString,
    index: OsString,
    documents: bool,
    out_dtype: Option<&str>,
) -> PyResult<Column> {
    let out_dtype = out_dtype.map(parse_dtype).transpose()?;
    let (dtype, table) = py.detach(|| -> Result<_> {
        let files = Files::look([tokens].into_iter().collect())?;
        let read = read(&index, documents);
        let read = read.map_err(|error| error.of_file(Path::new(&index)))?;
        let dtype = read.dtype;
        let flat = Flat::new(files, dtype, out_dtype.unwrap_or(wide(dtype)));
        let table = flat.map(|flat| Documents::new(flat, read.starts, read.lengths));
        Ok((dtype, table.transpose()?))
    })?;
    let table = table.ok_or_else(|| no_cast(dtype, out_dtype.unwrap_or(dtype)))?;
    Ok(Column::alone(table))
}

fn read(index: &OsStr, documents: bool) -> Result<format::Megatron> {
    let blobs = Blobs::new([index].into_iter().collect());
    let bytes = blobs.fetch(0, Blobs::ALL)?;
    let read = format::Megatron::parse(&bytes)?;
    Blobs::recycle(bytes);
    if documents {
        read.documents()
    } else {
        Ok(read)
    }
}

/// Returns the default dtype of tokens: torch's embeddings and losses take int64.
fn wide(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::Float32 | Dtype::Float64 => dtype,
        _ => Dtype::Int64,
    }
}

fn no_cast(from: Dtype, to: Dtype) -> PyErr {
    let (from, to) = (from.name(), to.name());
    let message = format!(
        "elements of {from} cannot be read as {to}: integers become int64, or int32 if it holds all of \
         their values; floats become float32 or float64"
    );
    PyValueError::new_err(message)
}
