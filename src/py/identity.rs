//! Compares lists by identity, faster than Python could one by one.

use pyo3::prelude::*;
use pyo3::types::PyList;

/// See the stub.
#[pyfunction]
pub(super) fn same_items(one: &Bound<'_, PyList>, other: &Bound<'_, PyList>) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(&other))
}
