//! `_lib.npy`, `_lib.npz`, `_lib.pt` and `_lib.plain`: columns of files with one array, or one other value, each.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::blobs;
use super::tick::tick;
use crate::Result;
use crate::column::Blobs;
use crate::format::{Array, Arrays, Integer, Npz, RowRange};
use crate::program::Contents;
use crate::py::column::Column;
use crate::sync::Arc;

/// Makes a column of arrays in `.npy` files.
#[pyfunction]
#[pyo3(signature = (source, rows, progress=None))]
pub(super) fn npy(
    source: &Bound<'_, PyAny>,
    rows: Vec<(Option<i64>, Option<i64>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| {
        Arrays::npy(blobs, &ranges(rows), tick)
    })
}

/// Makes a column of arrays in `.npz` files.
#[pyfunction]
#[pyo3(signature = (source, key, rows, progress=None))]
pub(super) fn npz(
    source: &Bound<'_, PyAny>,
    key: &str,
    rows: Vec<(Option<i64>, Option<i64>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| {
        Npz::open(blobs, key, &ranges(rows), tick)
    })
}

/// Makes a column of tensors in files of `torch.save`.
#[pyfunction]
#[pyo3(signature = (source, key=None, progress=None))]
pub(super) fn pt(
    source: &Bound<'_, PyAny>,
    key: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| Arrays::pt(blobs, key, tick))
}

/// Makes a column of files with one value each: bytes, a text, a number in digits.
#[pyfunction]
pub(super) fn plain(source: &Bound<'_, PyAny>, what: &str) -> PyResult<Column> {
    let blobs = blobs(source)?;
    let core = match what {
        "bytes" => Contents::bytes(blobs),
        "text" => Contents::texts(blobs),
        "integer" => Contents::arrays(blobs, Integer),
        _ => return Err(PyValueError::new_err(format!("unknown content {what:?}"))),
    };
    Ok(Column::over(Arc::new(core), [source]))
}

/// Makes a column of the arrays that `open` finds in files.
fn opened<A: Array + 'static>(
    source: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
    open: impl FnOnce(&Blobs, &mut dyn FnMut(usize) -> Result<()>) -> Result<(A, Blobs)> + Send,
) -> PyResult<Column> {
    let blobs = blobs(source)?;
    let mut tick = tick(progress.as_ref(), blobs.len());
    let (array, blobs) = source.py().detach(|| open(&blobs, &mut tick))?;
    let core = Contents::arrays(blobs, array);
    Ok(Column::over(Arc::new(core), [source]))
}

fn ranges(rows: Vec<(Option<i64>, Option<i64>)>) -> Vec<RowRange> {
    let ranges = rows.into_iter();
    ranges
        .map(|(start, stop)| RowRange { start, stop })
        .collect()
}
