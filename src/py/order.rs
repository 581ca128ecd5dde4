//! The order of samples at the boundary: permutations that Python draws, chunks of an epoch's order, and the indices
//! of a sampler that are plain integers, which mean the same to every dataset.
//!
//! A bool, a slice, a list or an array may be an index too, but only the dataset knows what it means.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyRange, PyType};

use super::interrupts::SLICE;
use super::{dlpack, tensor};
use crate::memory::{Dtype, lease};
use crate::order::{self, Indices};
use crate::sync::{Mutex, lock};

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Permutation(Mutex<order::Permutation>);

#[pymethods]
impl Permutation {
    #[new]
    #[pyo3(signature = (length, seed, skip=0, ranks=1))]
    fn new(
        py: Python<'_>,
        length: usize,
        seed: u64,
        skip: usize,
        ranks: u32,
    ) -> PyResult<Permutation> {
        let made = py.detach(|| order::Permutation::new(length, seed, skip, ranks));
        let made = made.ok_or_else(|| {
            let most = order::Permutation::MOST;
            PyValueError::new_err(format!("no permutation of {length}; at most of {most}"))
        })?;
        Ok(Permutation(Mutex::new(made)))
    }

    #[classattr]
    const MOST: u32 = order::Permutation::MOST;

    fn draw(&self, py: Python<'_>, count: usize) -> PyResult<Py<PyAny>> {
        // Waits without this lock, which a thread holds only while it is attached.
        let awaited = lock(&self.0).awaited(count);
        if let Some(rest) = awaited {
            while !py.detach(|| rest.wait(SLICE)) {
                py.check_signals()?;
            }
        }
        let mut permutation = lock(&self.0);
        let count = count.min(permutation.left());
        let mut memory = lease(8 * count)?;
        permutation.draw(memory.as_chunks_mut().0);
        drop(permutation);
        dlpack::tensor(py, memory, &[count], Dtype::Int64)
    }
}

/// Reads one chunk of an epoch's order: an int64 tensor, or a range.
pub(super) fn read_chunk(chunk: &Bound<'_, PyAny>) -> PyResult<Indices> {
    let Ok(range) = chunk.cast::<PyRange>() else {
        return tensor::indices(chunk).map(Indices::list);
    };
    let start: i64 = range.getattr("start")?.extract()?;
    let stop: i64 = range.getattr("stop")?.extract()?;
    let step: i64 = range.getattr("step")?.extract()?;
    if step != 1 {
        return Err(PyTypeError::new_err("a range of indices must have step 1"));
    }
    Ok(Indices::Span(start..stop.max(start)))
}

/// Reads the indices of a task, or its one index; None if one of them is not plain.
///
/// `tensors` says whether an int64 tensor without dimensions is plain: it is where a batch is made of single
/// samples, but not where the dataset is indexed with a list of them. With `below`, only ints from 0 to below
/// it are plain.
pub(super) fn read_indices(
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
