//! `_lib.Tokens` and `_lib.Megatron`.

use std::ffi::OsString;
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::Result;
use crate::column::{Blobs, Documents, Files, Flat, Strided};
use crate::format;
use crate::memory::Dtype;
use crate::py::column::{Column, parse_dtype};

/// Windows of files of tokens.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Tokens;

#[pymethods]
impl Tokens {
    #[new]
    fn new(
        py: Python<'_>,
        paths: Vec<OsString>,
        dtype: &str,
        out_dtype: &str,
        length: usize,
        stride: usize,
        offset: u64,
    ) -> PyResult<PyClassInitializer<Tokens>> {
        let (dtype, out_dtype) = (parse_dtype(dtype)?, parse_dtype(out_dtype)?);
        let sizes = [length, stride].map(|size| size.checked_mul(8).filter(|&bytes| bytes > 0));
        if sizes.contains(&None) {
            return Err(PyValueError::new_err("length and stride are at least 1"));
        }
        let windows = py.detach(|| {
            let files = Files::look(paths.into_iter().collect())?;
            let flat = Flat::new(files, dtype, out_dtype);
            flat.map(|flat| Strided::windows(flat, length, stride, offset))
                .transpose()
        })?;
        let windows = windows.ok_or_else(|| no_cast(dtype, out_dtype))?;
        let column = Column::alone(windows);
        Ok(PyClassInitializer::from(column).add_subclass(Tokens))
    }
}

/// Documents of a `.bin` file of tokens that has an `.idx` file.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Megatron;

#[pymethods]
impl Megatron {
    #[new]
    fn new(
        py: Python<'_>,
        tokens: String,
        index: String,
        documents: bool,
        out_dtype: Option<&str>,
    ) -> PyResult<PyClassInitializer<Megatron>> {
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
        let column = Column::alone(table);
        Ok(PyClassInitializer::from(column).add_subclass(Megatron))
    }
}

fn read(index: &str, documents: bool) -> Result<format::Megatron> {
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

pub(super) fn no_cast(from: Dtype, to: Dtype) -> PyErr {
    let (from, to) = (from.name(), to.name());
    let message = format!(
        "elements of {from} cannot be read as {to}: integers become int64, or int32 if it holds all of \
         their values; floats become float32 or float64"
    );
    PyValueError::new_err(message)
}
