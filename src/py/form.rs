//! The form of a leaf's values in Python, in samples and in batches.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

use super::error::unknown;
use crate::Error;
use crate::collate::{Dense, Field, Shape};
use crate::column::{Kind, Layout};
use crate::memory::Dtype;

/// The form of a leaf in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A tensor.
    Tensor,
    /// A tensor `(..., C, H, W)` in torch's memory format `channels_last`.
    ChannelsLast,
    /// A NumPy array; a NumPy scalar if it has no dimensions.
    Array,
    /// A NumPy array without dimensions.
    Cell,
    /// A Python int, float or bool.
    Number,
    /// A list of Python numbers, or of such lists.
    List,
    /// A str.
    Text,
    /// A bytes object.
    Bytes,
    /// A list of str or bytes, or of such lists.
    Texts,
    /// A PIL image.
    Pillow,
}

/// The kind of value that is handed to Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A sample, as the dataset returns it.
    Sample,
    /// A sample, as torch's `default_convert` returns it.
    Converted,
    /// A batch, as torch's `default_collate` returns it.
    Batch,
}

impl Unit {
    /// Returns the kind that a stream hands over.
    pub(super) fn of_stream(batched: bool) -> Unit {
        if batched {
            Unit::Batch
        } else {
            Unit::Converted
        }
    }
}

/// A column's position in the structure of a sample, and the form of its values.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Leaf {
    pub(super) column: usize,
    pub(super) form: Form,
}

#[pymethods]
impl Leaf {
    #[new]
    fn new(column: usize, form: &str) -> PyResult<Leaf> {
        let form = match form {
            "tensor" => Form::Tensor,
            "channels_last" => Form::ChannelsLast,
            "array" => Form::Array,
            "cell" => Form::Cell,
            "number" => Form::Number,
            "list" => Form::List,
            "text" => Form::Text,
            "bytes" => Form::Bytes,
            "texts" => Form::Texts,
            "pillow" => Form::Pillow,
            _ => return Err(unknown("form", form)),
        };
        Ok(Leaf { column, form })
    }
}

impl Form {
    /// Refuses a column whose values cannot have the form.
    pub(super) fn check(self, layout: &Layout) -> PyResult<()> {
        let (lists, kind) = layout.nesting;
        let is_python = matches!(layout.dtype, Dtype::Int64 | Dtype::Float64 | Dtype::Bool);
        let (fits, needs) = match self {
            Form::Tensor => (kind.is_numbers(), "numbers"),
            Form::ChannelsLast => (kind == Kind::Image, "images written with channels last"),
            Form::Array => (
                kind.is_numbers() || (lists, kind) == (0, Kind::Text),
                "numbers or text",
            ),
            Form::Cell => (
                (lists, kind) == (0, Kind::Rows) && layout.row_shape.is_empty(),
                "rows of one number",
            ),
            Form::Number => (
                lists == 0
                    && matches!(kind, Kind::Rows | Kind::Array)
                    && layout.shape.as_ref().is_some_and(Shape::is_empty)
                    && is_python,
                "rows of one int64, float64 or bool: what torch collates Python's numbers to",
            ),
            Form::List => (
                is_python && (lists > 0 || kind == Kind::Ragged || !layout.row_shape.is_empty()),
                "rows of several int64, float64 or bool",
            ),
            Form::Text => ((lists, kind) == (0, Kind::Text), "text"),
            Form::Bytes => ((lists, kind) == (0, Kind::Bytes), "bytes"),
            Form::Texts => (
                lists > 0 && matches!(kind, Kind::Text | Kind::Bytes),
                "lists of text or bytes",
            ),
            Form::Pillow => (
                layout.is_pixels,
                "images whose output is bytes, channels last",
            ),
        };
        if fits {
            return Ok(());
        }
        let message = format!(
            "the form {self:?} needs {needs}; found {}",
            layout.describe()
        );
        Err(PyValueError::new_err(message))
    }

    /// Makes the value of a field; `tensor` makes its tensor.
    pub(super) fn value(
        self,
        py: Python<'_>,
        field: Field,
        unit: Unit,
        tensor: &dyn Fn(Dense) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let field = match field {
            Field::Dense(dense) => dense,
            Field::Texts(texts) => return self.text(py, &texts, unit),
            Field::Bytes(all) => return bytes(py, &all, unit),
            Field::Lists(places) => return self.list(py, places, unit, tensor),
            Field::Padded(_) | Field::Joined(_) | Field::Packed(_) | Field::Separate(_) => {
                return Err(Error::Abandoned.into()); // unreachable: `Collation` handles these
            }
        };
        match (self, unit) {
            (Form::Number, Unit::Sample | Unit::Converted) => number(py, &field),
            (Form::List, Unit::Sample | Unit::Converted) => {
                tensor(field)?.call_method0(py, intern!(py, "tolist"))
            }
            (Form::List, Unit::Batch) => {
                let levels = field.shape.len() - 1;
                let places = tensor(field)?;
                Ok(unbind(places.bind(py), levels)?.unbind())
            }
            (Form::Array, Unit::Sample) => {
                let array = tensor(field)?.call_method0(py, intern!(py, "numpy"))?;
                let whole = PyTuple::empty(py); // array[()] is the array itself, or a scalar if it has no dimensions
                Ok(array.bind(py).get_item(whole)?.unbind())
            }
            (Form::Cell, Unit::Sample) => tensor(field)?.call_method0(py, intern!(py, "numpy")),
            (Form::Pillow, Unit::Sample) => pillow(py, &field),
            (Form::ChannelsLast, _) => {
                tensor(field)?.call_method1(py, intern!(py, "movedim"), (-1, -3))
            }
            _ => tensor(field),
        }
    }

    /// Makes the list of the values at each list position.
    fn list(
        self,
        py: Python<'_>,
        places: Vec<Field>,
        unit: Unit,
        tensor: &dyn Fn(Dense) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let places = places.into_iter().map(|place| {
            let is_text = matches!(place, Field::Texts(_) | Field::Bytes(_));
            let value = self.value(py, place, unit, tensor)?;
            match value.bind(py).cast::<PyList>() {
                // torch keeps texts in the tuple that `zip` made of the samples' lists.
                Ok(texts) if is_text && unit == Unit::Batch => Ok(texts.to_tuple().into()),
                _ => Ok(value),
            }
        });
        let places = places.collect::<PyResult<Vec<Py<PyAny>>>>()?;
        Ok(PyList::new(py, places)?.into_any().unbind())
    }

    /// Makes a str for a sample, or a list of them for a batch; NumPy's str for arrays.
    fn text(self, py: Python<'_>, texts: &[Box<str>], unit: Unit) -> PyResult<Py<PyAny>> {
        let array = match self {
            Form::Array => Some(py.import(intern!(py, "numpy"))?.getattr("str_")?),
            _ => None,
        };
        let one = |text: &str| match &array {
            Some(kind) => kind.call1((text,)),
            None => Ok(PyString::new(py, text).into_any()),
        };
        if let (Unit::Sample | Unit::Converted, [text]) = (unit, texts) {
            return Ok(one(text)?.unbind());
        }
        let texts = texts.iter().map(|text| one(text));
        let texts = texts.collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, texts)?.into_any().unbind())
    }
}

/// Makes a bytes object for a sample, or a list of them for a batch.
fn bytes(py: Python<'_>, all: &[Box<[u8]>], unit: Unit) -> PyResult<Py<PyAny>> {
    let mut all = all.iter().map(|bytes| PyBytes::new(py, bytes));
    match (unit, all.next()) {
        (Unit::Sample | Unit::Converted, Some(one)) => Ok(one.into_any().unbind()),
        (_, first) => {
            let all: Vec<_> = first.into_iter().chain(all).collect();
            Ok(PyList::new(py, all)?.into_any().unbind())
        }
    }
}

/// Splits a tensor into nested lists, `levels` deep.
fn unbind<'py>(tensor: &Bound<'py, PyAny>, levels: usize) -> PyResult<Bound<'py, PyAny>> {
    if levels == 0 {
        return Ok(tensor.clone());
    }
    let parts = tensor.call_method0(intern!(tensor.py(), "unbind"))?;
    let parts = parts.try_iter()?.map(|part| unbind(&part?, levels - 1));
    let parts = parts.collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(tensor.py(), parts)?.into_any())
}

/// Converts a field of one number to a Python number.
fn number(py: Python<'_>, field: &Dense) -> PyResult<Py<PyAny>> {
    let bytes = field.memory.bytes();
    match (field.dtype, bytes.first_chunk(), bytes) {
        (Dtype::Int64, Some(eight), _) => {
            PyInt::new(py, i64::from_ne_bytes(*eight)).into_py_any(py)
        }
        (Dtype::Float64, Some(eight), _) => {
            PyFloat::new(py, f64::from_ne_bytes(*eight)).into_py_any(py)
        }
        (Dtype::Bool, _, [byte]) => PyBool::new(py, *byte != 0).into_py_any(py),
        _ => Err(PyValueError::new_err(
            "internal error, please report it: no number",
        )),
    }
}

/// Makes a PIL image from an image's bytes.
fn pillow(py: Python<'_>, field: &Dense) -> PyResult<Py<PyAny>> {
    let (mode, height, width) = match field.shape[..] {
        [height, width, 1] => ("L", height, width),
        [height, width, 3] => ("RGB", height, width),
        _ => {
            return Err(PyValueError::new_err(
                "internal error, please report it: no image",
            ));
        }
    };
    let bytes = PyBytes::new(py, field.memory.bytes());
    let make = py.import(intern!(py, "PIL.Image"))?.getattr("frombytes")?;
    Ok(make.call1((mode, (width, height), bytes))?.unbind())
}
