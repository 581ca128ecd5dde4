//! The structure of a sample: which container holds which leaf.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple, PyType};

use super::form::{self, Form, Unit};

/// A structure whose leaves are column numbers.
pub(super) enum Template {
    Leaf(usize, Form),
    Tuple(Vec<Template>),
    List(Vec<Template>),
    Dict(Vec<(Py<PyAny>, Template)>),
    Named(Py<PyType>, Vec<Template>),
}

impl Template {
    /// Reads a structure; stores the form of each column in `forms`.
    pub(super) fn parse(
        value: &Bound<'_, PyAny>,
        forms: &mut [Option<Form>],
    ) -> PyResult<Template> {
        let mut parts = |items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| {
            items
                .map(|item| Template::parse(&item, forms))
                .collect::<PyResult<Vec<_>>>()
        };
        if value.is_exact_instance_of::<PyInt>() {
            return Template::leaf(value.extract()?, Form::Tensor, forms);
        }
        if let Ok(leaf) = value.cast_exact::<form::Leaf>() {
            return Template::leaf(leaf.get().column, leaf.get().form, forms);
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
                .map(|(key, item)| Ok((key.unbind(), Template::parse(&item, forms)?)));
            return Ok(Template::Dict(items.collect::<PyResult<_>>()?));
        }
        let message = format!(
            "a sample is made of tuples, lists, dicts, named tuples and columns, not of {}",
            value.get_type().name()?
        );
        Err(PyTypeError::new_err(message))
    }

    fn leaf(column: usize, form: Form, forms: &mut [Option<Form>]) -> PyResult<Template> {
        let columns = forms.len();
        let Some(place) = forms.get_mut(column) else {
            let message =
                format!("the structure refers to column {column}, but there are {columns}");
            return Err(PyValueError::new_err(message));
        };
        if *place.get_or_insert(form) != form {
            let message = format!("the structure uses column {column} in two forms");
            return Err(PyValueError::new_err(message));
        }
        Ok(Template::Leaf(column, form))
    }

    /// Returns the keys and positions that lead to a leaf; field names for named tuples.
    pub(super) fn path<'py>(
        &self,
        py: Python<'py>,
        leaf: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let mut steps: Vec<(Bound<'py, PyAny>, &Template)> = Vec::new();
        match self {
            Template::Leaf(own, _) => return Ok((*own == leaf).then(Vec::new)),
            Template::Tuple(parts) | Template::List(parts) => {
                for (position, part) in parts.iter().enumerate() {
                    steps.push((position.into_pyobject(py)?.into_any(), part));
                }
            }
            Template::Named(class, parts) => {
                let names = class.bind(py).getattr("_fields")?;
                for (name, part) in names.try_iter()?.zip(parts) {
                    steps.push((name?, part));
                }
            }
            Template::Dict(items) => {
                steps.extend(items.iter().map(|(key, part)| (key.bind(py).clone(), part)));
            }
        }
        for (step, part) in steps {
            if let Some(mut path) = part.path(py, leaf)? {
                path.insert(0, step);
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Puts the leaves into the structure. In batches, tuples become lists, as in torch's `default_collate`
    /// and `default_convert`.
    pub(super) fn fill<'py>(
        &self,
        py: Python<'py>,
        leaves: &[Py<PyAny>],
        unit: Unit,
    ) -> PyResult<Bound<'py, PyAny>> {
        // torch keeps a batch's texts and bytes as it finds them: in the tuple that `zip` made of a
        // sequence's samples, or in the list that it made of a dict's.
        let fill_one = |part: &Template| match part {
            Template::Leaf(leaf, Form::Text | Form::Bytes | Form::Array) if unit == Unit::Batch => {
                let values = leaves[*leaf].bind(py);
                Ok(match values.cast::<PyList>() {
                    Ok(texts) => texts.to_tuple().into_any(),
                    Err(_) => values.clone(),
                })
            }
            part => part.fill(py, leaves, unit),
        };
        let fill = |parts: &[Template]| {
            let parts = parts.iter().map(fill_one);
            parts.collect::<PyResult<Vec<_>>>()
        };
        match self {
            Template::Leaf(leaf, _) => Ok(leaves[*leaf].bind(py).clone()),
            Template::Tuple(parts) if unit == Unit::Sample => {
                Ok(PyTuple::new(py, fill(parts)?)?.into_any())
            }
            Template::Tuple(parts) | Template::List(parts) => {
                Ok(PyList::new(py, fill(parts)?)?.into_any())
            }
            Template::Named(class, parts) => class.bind(py).call1(PyTuple::new(py, fill(parts)?)?),
            Template::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, part) in items {
                    dict.set_item(key, part.fill(py, leaves, unit)?)?;
                }
                Ok(dict.into_any())
            }
        }
    }
}
