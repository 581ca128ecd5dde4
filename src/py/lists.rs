//! Python lists at native speed: comparison by identity, and conversion of numbers to the bytes of an array.
//!
//! Converts only exact floats, and exact ints that fit 64 bits: torch decides what others become.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyFloat, PyInt, PyList};

/// See the stub.
#[pyfunction]
pub(super) fn same_items(one: &Bound<'_, PyList>, other: &Bound<'_, PyList>) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(&other))
}

/// See the stub.
#[pyfunction]
pub(super) fn floats<'py>(values: &Bound<'py, PyList>) -> Option<Bound<'py, PyByteArray>> {
    numbers(values, |value| {
        let float = value.cast_exact::<PyFloat>().ok()?;
        Some(float.value().to_ne_bytes())
    })
}

/// See the stub.
#[pyfunction]
pub(super) fn ints<'py>(values: &Bound<'py, PyList>) -> Option<Bound<'py, PyByteArray>> {
    numbers(values, |value| {
        let int = value.cast_exact::<PyInt>().ok()?;
        Some(int.extract::<i64>().ok()?.to_ne_bytes())
    })
}

fn numbers<'py>(
    values: &Bound<'py, PyList>,
    number: impl Fn(&Bound<'py, PyAny>) -> Option<[u8; 8]>,
) -> Option<Bound<'py, PyByteArray>> {
    let numbers = values.iter().map(|value| number(&value));
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    Some(PyByteArray::new(values.py(), numbers.as_flattened()))
}
