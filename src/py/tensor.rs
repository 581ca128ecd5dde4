//! torch tensors: made from fields of batches, filled as destinations, copied on pool threads, read as indices.
#![allow(unsafe_code)]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::dlpack;
use crate::collate::{Dense, Shape, bytes_of};
use crate::copying;
use crate::memory::{Destination, Dtype, External, Transfer, View};
use crate::order::Indices;
use crate::program::Program;
use crate::sync::Arc;

/// Makes the tensor of a field; for memory that torch owns, returns the tensor that owns it.
pub(super) fn of_field(py: Python<'_>, field: Dense) -> PyResult<Py<PyAny>> {
    match field.memory {
        Destination::Lease(lease) => dlpack::tensor(py, lease, &field.shape, field.dtype),
        Destination::External(foreign) => {
            let owner = foreign.into_owner().downcast::<Py<PyAny>>();
            owner.map(|tensor| *tensor).map_err(|_| {
                PyTypeError::new_err("internal error, please report it: a foreign destination")
            })
        }
    }
}

/// Makes the tensor of a field in memory from `allocate`, if there is one; its shape may have been unknown before.
pub(super) fn of_field_by(
    py: Python<'_>,
    field: Dense,
    allocate: Option<&Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (Some(allocate), Destination::Lease(lease)) = (allocate, &field.memory) else {
        return of_field(py, field);
    };
    let mut memory = allocated(allocate.bind(py), &field.shape, field.dtype)?;
    py.detach(|| memory.bytes_mut().copy_from_slice(lease));
    of_field(py, Dense { memory, ..field })
}

/// Has `allocate` make the tensor of a field, to be written.
pub(super) fn allocated(
    allocate: &Bound<'_, PyAny>,
    shape: &[usize],
    dtype: Dtype,
) -> PyResult<Destination> {
    let bytes = bytes_of(shape, dtype.itemsize());
    let shape = PyTuple::new(allocate.py(), shape)?;
    destination(&allocate.call1((shape, dtype.name()))?, bytes)
}

/// Takes the memory of a dense CPU tensor of `bytes` bytes for writing; keeps the tensor alive.
fn destination(tensor: &Bound<'_, PyAny>, bytes: usize) -> PyResult<Destination> {
    let (pointer, len) = memory(tensor)?;
    if len != bytes {
        let message = format!("the tensor for a field has {len} bytes, not {bytes}");
        return Err(PyValueError::new_err(message));
    }
    let owner = Box::new(tensor.clone().unbind());
    // SAFETY: `memory` checked that the tensor is one block of `len` bytes; `owner` keeps it. By the contract
    // of `allocate` it is fresh, so nothing else reads or writes it. The slot ensures that every byte is
    // written before one is read: it hands a field out only when all of its samples are there.
    Ok(Destination::External(unsafe {
        External::new(pointer as *mut u8, len, owner)
    }))
}

/// Has `allocate` make the tensors that fields of known shape are written to, by leaf.
pub(super) fn destinations(
    allocate: &Bound<'_, PyAny>,
    program: &Program,
    indices: &Indices,
    batched: bool,
) -> PyResult<Vec<Vec<Destination>>> {
    let make = |(mut shape, dtype): (Shape, Dtype)| {
        if !batched {
            shape.remove(0);
        }
        allocated(allocate, &shape, dtype)
    };
    let leaves = (0..program.leaves().len()).map(|place| {
        let tensors = program.tensors(place, indices).unwrap_or_default();
        tensors.into_iter().map(make).collect()
    });
    leaves.collect()
}

/// A copy in progress. Keeps the tensors alive.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Copying {
    copying: copying::Copying, // dropped first: the copy must end before the tensors go
    _tensors: (Vec<Py<PyAny>>, Vec<Py<PyAny>>),
}

#[pymethods]
impl Copying {
    #[new]
    fn new(targets: Vec<Bound<'_, PyAny>>, sources: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let transfer = transfer(&targets, &sources)?;
        let kept =
            |tensors: Vec<Bound<'_, PyAny>>| tensors.into_iter().map(Bound::unbind).collect();
        Ok(Self {
            copying: copying::Copying::start(transfer),
            _tensors: (kept(targets), kept(sources)),
        })
    }

    fn wait(&self, py: Python<'_>) {
        py.detach(|| self.copying.wait());
    }
}

/// Plans to copy tensors to as many others of the same sizes; the caller keeps them until that is over.
fn transfer(targets: &[Bound<'_, PyAny>], sources: &[Bound<'_, PyAny>]) -> PyResult<Transfer> {
    let memories = |tensors: &[Bound<'_, PyAny>]| -> PyResult<Vec<(usize, usize)>> {
        tensors.iter().map(memory).collect()
    };
    let (targets, sources) = (memories(targets)?, memories(sources)?);
    let sizes = |tensors: &[(usize, usize)]| -> Vec<usize> {
        tensors.iter().map(|&(_, bytes)| bytes).collect()
    };
    if sizes(&targets) != sizes(&sources) {
        let message = "tensors can only be copied to as many others of the same sizes";
        return Err(PyValueError::new_err(message));
    }
    let blocks = sources.iter().zip(&targets);
    let blocks = blocks.map(|(&(from, bytes), &(to, _))| (from, to, bytes));
    // SAFETY: `memory` checked that each is one block of so many bytes; by contract the caller keeps them,
    // and the targets are fresh, so nothing else uses them.
    Ok(unsafe { Transfer::new(blocks) })
}

/// Reads a one-dimensional int64 tensor.
pub(super) fn indices(tensor: &Bound<'_, PyAny>) -> PyResult<Arc<[i64]>> {
    let (pointer, len) = memory(tensor)?;
    if tensor.getattr("dtype")?.str()?.to_string_lossy() != "torch.int64" {
        return Err(PyTypeError::new_err("indices must be an int64 tensor"));
    }
    let owner = Box::new(tensor.clone().unbind());
    // SAFETY: `memory` checked that the tensor is one block of `len` bytes, and `owner` keeps it.
    let view = unsafe { View::new(pointer as *const u8, len, owner) };
    let (numbers, _) = view.bytes(0, len).as_chunks::<8>();
    Ok(numbers
        .iter()
        .map(|bytes| i64::from_ne_bytes(*bytes))
        .collect())
}

/// Returns the address and the bytes of a dense CPU tensor in C order.
fn memory(tensor: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let on_cpu: bool = tensor.getattr("is_cpu")?.extract()?;
    let dense: bool = tensor.call_method0("is_contiguous")?.extract()?;
    if !on_cpu || !dense {
        return Err(PyTypeError::new_err("a contiguous CPU tensor is needed"));
    }
    let pointer = tensor.call_method0("data_ptr")?.extract()?;
    Ok((pointer, tensor.getattr("nbytes")?.extract()?))
}
