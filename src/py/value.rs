//! Reads the values of one field from Python's samples: tensors, arrays, lists of numbers.
//!
//! Copies nothing but lists. Reads tensors through DLPack, and arrays through the buffer protocol;
//! `fastload.memory.layout` handles the rest, and raises the errors for values that no batch can hold.
#![allow(unsafe_code)]

use std::any::Any;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple, PyType};

use super::column::parse_dtype;
use super::{dlpack, lists};
use crate::collate::{Array, copy, packed_strides};
use crate::error::Mismatch;
use crate::memory::Cast;
use crate::memory::{Dtype, View};
use crate::{Error, Result};

/// The values of one field, of one dtype.
pub(super) struct Values {
    values: Vec<Value>,
    pub(super) dtype: Dtype,
}

/// The array of one sample.
pub(super) struct Value {
    pub(super) view: View,
    pub(super) first: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<isize>,
    pub(super) dtype: Dtype,
}

impl Values {
    /// Reads the values of a batch's samples.
    pub(super) fn read(values: &Bound<'_, PyList>, field: &str) -> PyResult<Values> {
        let mut lists = lists::Lists::default();
        let mut read = Vec::with_capacity(values.len());
        for (position, value) in values.iter().enumerate() {
            let one = lists.read(&value).and_then(|is_list| {
                if is_list {
                    Ok(None)
                } else {
                    Value::read(&value).map(Some)
                }
            });
            read.push(one.map_err(|error| place(values.py(), error, field, position))?);
        }
        let known = read.iter().flatten().next();
        let known = known.map(|value| (value.dtype, value.shape.clone()));
        let mut lists = lists.finish(known).into_iter();
        let all = read.into_iter().map(|value| value.or_else(|| lists.next()));
        let values: Vec<Value> = all.flatten().collect();
        let Some(dtype) = values.first().map(|first| first.dtype) else {
            return Err(Error::Empty.into());
        };
        let odd = values.iter().position(|value| value.dtype != dtype);
        if let Some(position) = odd {
            let odd = Mismatch::Dtype {
                position,
                dtype: values[position].dtype.name(),
                first: dtype.name(),
            };
            return Err(odd.of_field(field).into());
        }
        Ok(Values { values, dtype })
    }

    /// Widens integers to int64, which embeddings are indexed with.
    pub(super) fn widen(mut self) -> Values {
        if let Some(cast) = Cast::new(self.dtype, Dtype::Int64) {
            for value in &mut self.values {
                *value = value.cast(cast);
            }
            self.dtype = Dtype::Int64;
        }
        self
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn shapes(&self) -> impl Iterator<Item = &[usize]> + Clone {
        self.values.iter().map(|value| &value.shape[..])
    }

    pub(super) fn arrays(&self) -> impl Iterator<Item = Array<'_>> {
        self.values.iter().map(Value::array)
    }
}

impl Value {
    /// Makes a value of an array in C order.
    pub(super) fn packed(bytes: Vec<u8>, shape: Vec<usize>, dtype: Dtype) -> Value {
        let strides = packed_strides(&shape, dtype.itemsize());
        let (pointer, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the bytes of a vector stay in place when it moves, and nothing changes them.
        let view = unsafe { View::new(pointer, len, Box::new(bytes)) };
        Value {
            view,
            first: 0,
            shape,
            strides,
            dtype,
        }
    }

    pub(super) fn array(&self) -> Array<'_> {
        Array {
            bytes: self.view.bytes(0, self.view.len()),
            first: self.first,
            shape: &self.shape,
            strides: &self.strides,
        }
    }

    fn cast(&self, cast: Cast) -> Value {
        let elements = self.shape.iter().product::<usize>();
        let mut packed = vec![0; elements * self.dtype.itemsize()];
        copy(self.array(), self.dtype.itemsize(), &mut packed);
        let mut bytes = vec![0; elements * cast.to().itemsize()];
        cast.run(&packed, &mut bytes);
        Value::packed(bytes, self.shape.clone(), cast.to())
    }

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Value> {
        let py = value.py();
        let is_tensor = value.is_instance(TENSOR.import(py, "torch", "Tensor")?)?;
        if is_tensor {
            if value.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
                return Err(PyTypeError::new_err(
                    "a batch would lose the gradient that a tensor requires; detach() it in the dataset",
                ));
            }
            return match dlpack::borrow(value)? {
                Some(seen) => Value::new(seen, value),
                None => Value::slow(value, "of_tensor"),
            };
        }
        let array = ARRAY.import(py, "numpy", "ndarray")?;
        if !value.is_exact_instance(array) {
            let numpy = py.import(intern!(py, "numpy"))?;
            let converted = numpy.call_method1(intern!(py, "asanyarray"), (value,))?;
            return Value::slow(&converted, "of_array");
        }
        match Value::buffer(value)? {
            Some(value) => Ok(value),
            None => Value::slow(value, "of_array"),
        }
    }

    /// Reads an array through the buffer protocol, if it supports that.
    fn buffer(array: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        let Ok(buffer) = PyUntypedBuffer::get(array) else {
            return Ok(None);
        };
        let size = buffer.item_size();
        let name = match buffer.format().to_bytes() {
            b"?" => "bool".into(),
            b"b" | b"h" | b"i" | b"l" | b"q" => format!("int{}", 8 * size),
            b"B" | b"H" | b"I" | b"L" | b"Q" => format!("uint{}", 8 * size),
            b"e" | b"f" | b"d" => format!("float{}", 8 * size),
            b"Zf" | b"Zd" => format!("complex{}", 8 * size),
            _ => return Ok(None),
        };
        let Some(dtype) = Dtype::from_name(&name) else {
            return Ok(None);
        };
        let (shape, strides) = (buffer.shape().to_vec(), buffer.strides().to_vec());
        let pointer = buffer.buf_ptr() as usize;
        let (view, first) = view(pointer, &shape, &strides, dtype, Box::new(buffer))?;
        Ok(Some(Value {
            view,
            first,
            shape,
            strides,
            dtype,
        }))
    }

    /// Calls `fastload.memory.layout` for an array's address, or to raise the error for one that has none.
    fn slow(value: &Bound<'_, PyAny>, reader: &str) -> PyResult<Value> {
        let arrays = value
            .py()
            .import(intern!(value.py(), "fastload.memory.layout"))?;
        let memory = arrays.call_method1(reader, (value, "a batch"))?;
        let memory: (usize, Vec<usize>, Vec<isize>, String, Bound<'_, PyAny>) = memory.extract()?;
        let (pointer, shape, strides, name, owner) = memory;
        let dtype = parse_dtype(&name)?;
        let seen = dlpack::Borrowed {
            pointer,
            shape,
            strides,
            dtype,
        };
        Value::new(seen, &owner)
    }

    fn new(seen: dlpack::Borrowed, owner: &Bound<'_, PyAny>) -> PyResult<Value> {
        let dlpack::Borrowed {
            pointer,
            shape,
            strides,
            dtype,
        } = seen;
        let owner = Box::new(owner.clone().unbind());
        let (view, first) = view(pointer, &shape, &strides, dtype, owner)?;
        Ok(Value {
            view,
            first,
            shape,
            strides,
            dtype,
        })
    }
}

/// Returns true if arrays are still what they were when they were joined. See the stub.
#[pyfunction]
pub(super) fn are_joined(
    arrays: &Bound<'_, PyList>,
    before: &Bound<'_, PyList>,
    joined: &Bound<'_, PyAny>,
    lengths: Vec<usize>,
) -> PyResult<bool> {
    let whole = Value::read(joined)?;
    let mut left = whole.view.bytes(0, whole.view.len());
    if arrays.len() != before.len() || arrays.len() != lengths.len() {
        return Ok(false);
    }
    for ((array, old), length) in arrays.iter().zip(before).zip(lengths) {
        let value = array.is(&old).then(|| Value::read(&array));
        let Some(Ok(value)) = value else {
            return Ok(false); // what is no value by now, is refused where arrays are joined
        };
        let strides = packed_strides(&value.shape, value.dtype.itemsize());
        let is_alike = value.dtype == whole.dtype
            && value.shape.first() == Some(&length)
            && value.shape.get(1..) == whole.shape.get(1..)
            && (value.view.len() == 0 || value.strides == strides);
        let bytes = value.view.bytes(0, value.view.len());
        match left.split_at_checked(bytes.len()) {
            Some((own, rest)) if is_alike && own == bytes => left = rest,
            _ => return Ok(false),
        }
    }
    Ok(left.is_empty())
}

static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Shares the memory that an array of another owner spans; returns it with the offset of the first element.
pub(super) fn view(
    pointer: usize,
    shape: &[usize],
    strides: &[isize],
    dtype: Dtype,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<(View, usize)> {
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
    let (start, bytes, first) = if shape.contains(&0) {
        (pointer, 0, 0)
    } else {
        let start = pointer.checked_sub(first).ok_or_else(layout)?;
        (start, first + high.unsigned_abs() + dtype.itemsize(), first)
    };
    // SAFETY: the caller names an array that `owner` keeps alive and in place, or whose moves are followed
    // (see `fastload.memory.borrowed`). `bytes` spans the elements, from the lowest address that the strides reach
    // to the highest.
    let view = unsafe { View::new(start as *const u8, bytes, owner) };
    Ok((view, first))
}

/// Adds the field and the position in the batch to an error.
fn place(py: Python<'_>, error: PyErr, field: &str, position: usize) -> PyErr {
    let note = format!("while collating field {field}, sample {position} of the batch");
    // Without its note the exception is still the right one.
    let _ = error
        .value(py)
        .call_method1(intern!(py, "add_note"), (note,));
    error
}

/// Reads a list or a tuple; None for anything else.
pub(super) fn sequence<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = value.cast_exact::<PyList>() {
        return Some(list.iter().collect());
    }
    let tuple = value.cast_exact::<PyTuple>().ok()?;
    Some(tuple.iter().collect())
}

/// Returns the error of a list that is not an array.
pub(super) fn uneven() -> PyErr {
    PyValueError::new_err(
        "a list of lists of different lengths is no array; pad or flatten it in the dataset, or pass \
         it on with Keep()",
    )
}
