//! Columns, as Python makes them.
#![allow(unsafe_code)]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::transform;
use crate::column::{self, Blobs};
use crate::decode::Mode;
use crate::memory::{Dtype, View};
use crate::program::{self, Leaf, Source};
use crate::sync::Arc;
use crate::{Error, Result};

/// Fixed-size rows of one array, shared without a copy.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Rows {
    pub(super) leaf: Arc<Leaf>,
    pointer: usize,
    /// The owner, if it is a tensor: torch moves a tensor's memory when the tensor is shared with
    /// another process, or resized.
    tensor: Option<Py<PyAny>>,
}

#[pymethods]
impl Rows {
    #[new]
    fn new(
        py: Python<'_>,
        pointer: usize,
        shape: Vec<usize>,
        strides_bytes: Vec<isize>,
        dtype: &str,
        owner: Py<PyAny>,
    ) -> PyResult<Rows> {
        let Some(dtype) = Dtype::from_name(dtype) else {
            return Err(Error::Dtype {
                name: dtype.to_owned(),
            }
            .into());
        };
        let is_tensor = owner.bind(py).hasattr("data_ptr")?;
        let tensor = is_tensor.then(|| owner.clone_ref(py));
        let rows = rows(pointer, &shape, &strides_bytes, dtype, Box::new(owner))?;
        Ok(Rows {
            leaf: Arc::new(Leaf::Rows(rows)),
            pointer,
            tensor,
        })
    }

    fn __len__(&self) -> usize {
        self.leaf.len()
    }

    pub(super) fn moved(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(tensor) = &self.tensor else {
            return Ok(false);
        };
        let pointer: usize = tensor.bind(py).call_method0("data_ptr")?.extract()?;
        Ok(pointer != self.pointer)
    }
}

impl Rows {
    /// Whether the owner may move the memory.
    pub(super) fn is_movable(&self) -> bool {
        self.tensor.is_some()
    }
}

fn rows(
    pointer: usize,
    shape: &[usize],
    strides: &[isize],
    dtype: Dtype,
    owner: Box<dyn std::any::Any + Send + Sync>,
) -> Result<column::Rows> {
    let layout = || Error::Layout {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
    };
    let (mut low, mut high) = (0_isize, 0_isize);
    for (&n, &stride) in shape.iter().zip(strides) {
        let steps = isize::try_from(n).map_err(|_| layout())? - 1;
        let extent = stride.checked_mul(steps.max(0)).ok_or_else(layout)?;
        low = low.checked_add(extent.min(0)).ok_or_else(layout)?;
        high = high.checked_add(extent.max(0)).ok_or_else(layout)?;
    }
    let first = low.unsigned_abs();
    let empty = shape.contains(&0);
    let bytes = if empty {
        0
    } else {
        first + high.unsigned_abs() + dtype.itemsize()
    };
    let start = if empty {
        pointer
    } else {
        pointer.checked_sub(first).ok_or_else(layout)?
    };
    // SAFETY: the caller names an array that `owner` keeps alive, and where it is: a tensor's owner can
    // move it, which is looked for before each use (`Rows::moved`). `bytes` spans the elements, from
    // the lowest address that the strides reach to the highest.
    let view = unsafe { View::new(start as *const u8, bytes, owner) };
    column::Rows::new(view, if empty { 0 } else { first }, shape, strides, dtype).ok_or_else(layout)
}

/// Images, with the operations that each goes through.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Image {
    pub(super) leaf: Arc<Leaf>,
    /// Where the images are, unless they are encoded.
    pub(super) rows: Option<Py<Rows>>,
}

#[pymethods]
impl Image {
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        mode: &str,
        ops: &Bound<'_, PyList>,
        output: &Bound<'_, PyTuple>,
    ) -> PyResult<Image> {
        let rows = source.cast::<Rows>().ok();
        let source = if let Some(rows) = rows
            && let Leaf::Rows(core) = &*rows.get().leaf
        {
            Source::Decoded(core.clone())
        } else {
            let Some(mode) = Mode::from_name(mode) else {
                return Err(PyValueError::new_err(format!("unknown mode {mode:?}")));
            };
            let paths: Vec<String> = source.extract()?;
            Source::Encoded(Blobs::new(paths.into_iter().collect()), mode)
        };
        let pipeline = transform::pipeline(ops, output, source.known())?;
        let image = program::Image::new(source, pipeline)?;
        Ok(Image {
            leaf: Arc::new(Leaf::Image(image)),
            rows: rows.map(|rows| rows.clone().unbind()),
        })
    }

    fn __len__(&self) -> usize {
        self.leaf.len()
    }
}
