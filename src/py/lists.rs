//! Python lists at native speed: comparison by identity, and conversion of numbers to the bytes of an array.
//!
//! Converts only exact floats, and exact ints that fit 64 bits: torch decides what others become.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyFloat, PyInt, PyList, PyType};

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

/// See the stub.
#[pyfunction]
pub(super) fn numbers_of_lists<'py>(
    lists: &Bound<'py, PyList>,
) -> PyResult<Option<(Bound<'py, PyType>, Bound<'py, PyByteArray>)>> {
    let mut kind: Option<Bound<'py, PyType>> = None;
    let mut bytes = Vec::new();
    for list in lists {
        for value in list.try_iter()? {
            let value = value?;
            let own = value.get_type_ptr(); // a new reference to the type costs as much as the number
            if kind.get_or_insert_with(|| value.get_type()).as_type_ptr() != own {
                return Ok(None);
            }
            if let Ok(int) = value.cast_exact::<PyInt>() {
                let Ok(int) = int.extract::<i64>() else {
                    return Ok(None);
                };
                bytes.extend(int.to_ne_bytes());
            } else if let Ok(float) = value.cast_exact::<PyFloat>() {
                bytes.extend(float.value().to_ne_bytes());
            } else if let Ok(truth) = value.cast_exact::<PyBool>() {
                bytes.push(truth.is_true().into());
            } else {
                return Ok(None);
            }
        }
    }
    Ok(kind.map(|kind| (kind, PyByteArray::new(lists.py(), &bytes))))
}

fn numbers<'py>(
    values: &Bound<'py, PyList>,
    number: impl Fn(&Bound<'py, PyAny>) -> Option<[u8; 8]>,
) -> Option<Bound<'py, PyByteArray>> {
    let numbers = values.iter().map(|value| number(&value));
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    Some(PyByteArray::new(values.py(), numbers.as_flattened()))
}
