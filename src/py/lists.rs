//! Python lists at native speed: comparison by identity, and conversion of numbers to arrays.
//!
//! Converts only exact floats, and exact ints that fit 64 bits: torch or NumPy decides what others become.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyFloat, PyInt, PyList, PyType};

use super::value::{Value, sequence, uneven};
use crate::memory::Dtype;

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

/// The lists of one field. Owns their common dtype: bool if all are, else int64, else float64, as torch's
/// `default_collate` chooses for single numbers.
#[derive(Default)]
pub(super) struct Lists {
    lists: Vec<List>,
}

struct List {
    shape: Vec<usize>,
    numbers: Numbers,
    is_bool: bool,
}

enum Numbers {
    Whole(Vec<i64>),
    Real(Vec<f64>),
}

impl Lists {
    /// Adds a list of exact Python numbers, or of such lists; returns false for any other value.
    pub(super) fn read(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(items) = sequence(value) else {
            return Ok(false);
        };
        let mut list = List {
            shape: Vec::new(),
            numbers: Numbers::Whole(Vec::new()),
            is_bool: true,
        };
        let complete = list.read(&items, 0)?;
        if complete {
            self.lists.push(list);
        }
        Ok(complete)
    }

    /// Makes arrays of the lists. `known` are the dtype and the shape of a value that is not a list.
    pub(super) fn finish(self, known: Option<(Dtype, Vec<usize>)>) -> Vec<Value> {
        let filled = || self.lists.iter().filter(|list| list.len() > 0);
        let is_real = filled().any(|list| matches!(list.numbers, Numbers::Real(_)));
        let is_bool = filled().all(|list| list.is_bool) && filled().next().is_some();
        let dtype = match &known {
            Some((dtype, _)) if filled().next().is_none() => *dtype,
            _ if is_real => Dtype::Float64,
            _ if is_bool => Dtype::Bool,
            _ => Dtype::Int64,
        };
        let shape = filled().next().map(|list| list.shape.clone());
        let shape = shape.or(known.map(|(_, shape)| shape)).unwrap_or_default();
        let lists = self.lists.into_iter();
        lists.map(|list| list.finish(dtype, &shape)).collect()
    }
}

impl List {
    fn len(&self) -> usize {
        match &self.numbers {
            Numbers::Whole(numbers) => numbers.len(),
            Numbers::Real(numbers) => numbers.len(),
        }
    }

    /// Reads the items of a list nested `depth` deep; returns false if one is not a Python number.
    fn read(&mut self, items: &[Bound<'_, PyAny>], depth: usize) -> PyResult<bool> {
        match self.shape.get(depth) {
            Some(&size) if size != items.len() => return Err(uneven()),
            Some(_) => {}
            None => self.shape.push(items.len()),
        }
        for item in items {
            let is_leaf = self.shape.len() == depth + 1;
            if let Ok(number) = item.cast_exact::<PyInt>() {
                self.push(depth, number.extract()?, false)?;
            } else if let Ok(number) = item.cast_exact::<PyFloat>() {
                self.push_real(depth, number.extract()?)?;
            } else if let Ok(flag) = item.cast_exact::<PyBool>() {
                self.push(depth, flag.is_true().into(), true)?;
            } else if let Some(inner) = sequence(item) {
                if is_leaf && self.len() > 0 {
                    return Err(uneven());
                }
                if !self.read(&inner, depth + 1)? {
                    return Ok(false);
                }
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn push(&mut self, depth: usize, number: i64, is_bool: bool) -> PyResult<()> {
        self.check(depth)?;
        self.is_bool &= is_bool;
        match &mut self.numbers {
            Numbers::Whole(numbers) => numbers.push(number),
            Numbers::Real(numbers) => numbers.push(number as f64),
        }
        Ok(())
    }

    fn push_real(&mut self, depth: usize, number: f64) -> PyResult<()> {
        self.check(depth)?;
        self.is_bool = false;
        if let Numbers::Whole(whole) = &mut self.numbers {
            self.numbers = Numbers::Real(whole.iter().map(|&number| number as f64).collect());
        }
        if let Numbers::Real(numbers) = &mut self.numbers {
            numbers.push(number);
        }
        Ok(())
    }

    /// Refuses a number next to lists.
    fn check(&self, depth: usize) -> PyResult<()> {
        if self.shape.len() == depth + 1 {
            return Ok(());
        }
        Err(uneven())
    }

    /// Makes the array. An empty list gets the rank of the others.
    fn finish(mut self, dtype: Dtype, other: &[usize]) -> Value {
        if self.shape == [0] && other.len() > 1 {
            self.shape.extend_from_slice(&other[1..]);
        }
        let bytes = match (self.numbers, dtype) {
            (Numbers::Whole(flags), Dtype::Bool) => {
                flags.iter().map(|&flag| u8::from(flag != 0)).collect()
            }
            (Numbers::Whole(numbers), Dtype::Float64) => {
                let numbers = numbers.iter().map(|&number| number as f64);
                numbers.flat_map(f64::to_ne_bytes).collect()
            }
            (Numbers::Whole(numbers), _) => {
                numbers.into_iter().flat_map(i64::to_ne_bytes).collect()
            }
            (Numbers::Real(numbers), _) => numbers.into_iter().flat_map(f64::to_ne_bytes).collect(),
        };
        Value::packed(bytes, self.shape, dtype)
    }
}
