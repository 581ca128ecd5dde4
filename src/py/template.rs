//! The structure of a sample: which container holds which leaf.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple, PyType};

/// A structure whose leaves are numbers of columns.
pub(super) enum Template {
    Leaf(usize),
    Tuple(Vec<Template>),
    List(Vec<Template>),
    Dict(Vec<(Py<PyAny>, Template)>),
    Named(Py<PyType>, Vec<Template>),
}

/// For whom a structure is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As the dataset returns it.
    Sample,
    /// As torch's `default_collate` and `default_convert` return it: tuples become lists.
    Batch,
}

impl Template {
    /// Reads a structure; `columns` is how many leaves there are.
    pub(super) fn parse(value: &Bound<'_, PyAny>, columns: usize) -> PyResult<Template> {
        let parts = |items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| {
            items
                .map(|item| Template::parse(&item, columns))
                .collect::<PyResult<Vec<_>>>()
        };
        if value.is_exact_instance_of::<PyInt>() {
            let leaf = value.extract()?;
            if leaf >= columns {
                let message = format!("the structure names column {leaf} of {columns}");
                return Err(PyValueError::new_err(message));
            }
            return Ok(Template::Leaf(leaf));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            let fields = parts(&mut tuple.iter())?;
            return if value.hasattr("_fields")? {
                Ok(Template::Named(value.get_type().unbind(), fields))
            } else {
                Ok(Template::Tuple(fields))
            };
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return Ok(Template::List(parts(&mut list.iter())?));
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            let items = dict
                .iter()
                .map(|(key, item)| Ok((key.unbind(), Template::parse(&item, columns)?)));
            return Ok(Template::Dict(items.collect::<PyResult<_>>()?));
        }
        let message = format!(
            "a sample is made of tuples, lists, dicts, named tuples and columns, not of {}",
            value.get_type().name()?
        );
        Err(PyTypeError::new_err(message))
    }

    /// Puts the leaves into the structure.
    pub(super) fn fill<'py>(
        &self,
        py: Python<'py>,
        leaves: &[Py<PyAny>],
        form: Form,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fill = |parts: &[Template]| {
            parts
                .iter()
                .map(|part| part.fill(py, leaves, form))
                .collect::<PyResult<Vec<_>>>()
        };
        match self {
            Template::Leaf(leaf) => Ok(leaves[*leaf].bind(py).clone()),
            Template::Tuple(parts) if form == Form::Sample => {
                Ok(PyTuple::new(py, fill(parts)?)?.into_any())
            }
            Template::Tuple(parts) | Template::List(parts) => {
                Ok(PyList::new(py, fill(parts)?)?.into_any())
            }
            Template::Named(class, parts) => class.bind(py).call1(PyTuple::new(py, fill(parts)?)?),
            Template::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, part) in items {
                    dict.set_item(key, part.fill(py, leaves, form)?)?;
                }
                Ok(dict.into_any())
            }
        }
    }
}
