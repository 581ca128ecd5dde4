//! Reads a sampler's indices that are plain integers: those that mean the same to every dataset.
//!
//! A bool, a slice, a list or an array may be an index too, but only the dataset knows what it means.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyType};

use crate::order::Indices;

/// Reads the indices of a task, or its one index; None if one of them is not plain.
///
/// `tensors` says whether an int64 tensor without dimensions is plain: it is where a batch is made of single
/// samples, but not where the dataset is indexed with a list of them. With `below`, only ints from 0 to below
/// it are plain.
pub(super) fn read(
    task: &Bound<'_, PyAny>,
    batched: bool,
    tensors: bool,
    below: Option<i64>,
) -> PyResult<Option<Indices>> {
    let plain = |index: &Bound<'_, PyAny>| match below {
        Some(below) => small(index, below),
        None => plain(index, tensors),
    };
    if !batched {
        return Ok(plain(task)?.map(|index| Indices::list([index])));
    }
    let Ok(indices) = task.try_iter() else {
        return Ok(None);
    };
    let indices = indices.map(|index| plain(&index?));
    let indices: Option<Vec<i64>> = indices.collect::<PyResult<_>>()?;
    Ok(indices.map(Indices::list))
}

/// Returns a byte for each index of a task: 0 for a `Filler`, which only keeps ranks in step, else 1.
pub(super) fn marks(task: &Bound<'_, PyAny>) -> PyResult<Box<[u8]>> {
    let indices = task.try_iter()?;
    let marks = indices.map(|index| Ok(u8::from(!is_filler(&index?)?)));
    marks.collect()
}

fn is_filler(index: &Bound<'_, PyAny>) -> PyResult<bool> {
    static FILLER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let filler = FILLER.import(index.py(), "fastload.batching.filler", "Filler")?;
    Ok(index.is_exact_instance(filler))
}

/// Reads an int or a `Filler` from 0 to below `below`.
fn small(index: &Bound<'_, PyAny>, below: i64) -> PyResult<Option<i64>> {
    let is_int = index.is_exact_instance_of::<PyInt>() || is_filler(index)?;
    let value = is_int.then(|| index.extract().ok()).flatten();
    Ok(value.filter(|value| (0..below).contains(value)))
}

/// Reads an int, a `Filler`, a NumPy integer, or an int64 tensor without dimensions.
fn plain(index: &Bound<'_, PyAny>, tensors: bool) -> PyResult<Option<i64>> {
    static NUMPY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static INT64: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = index.py();
    let is_plain = index.is_exact_instance_of::<PyInt>()
        || is_filler(index)?
        || index.is_instance(NUMPY.import(py, "numpy", "integer")?)?
        || tensors
            && index.is_exact_instance(TENSOR.import(py, "torch", "Tensor")?)
            && index.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0
            && index
                .getattr(intern!(py, "dtype"))?
                .is(INT64.import(py, "torch", "int64")?);
    Ok(is_plain.then(|| index.extract().ok()).flatten())
}
