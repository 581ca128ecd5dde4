//! Programs, as Python makes them: columns, and the structure of a sample.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::column::{self, Column, Rows};
use super::foreign;
use super::form::{Form, Unit};
use super::rule::{Collation, Rule};
use super::template::Template;
use super::tensor;
use crate::Error;
use crate::collate::{Dense, Field};
use crate::column::Kind;
use crate::decode::Switches;
use crate::program::{self, Options};
use crate::sync::Arc;

/// Shape and dtype of a leaf.
type Leaf<'py> = (Option<Bound<'py, PyTuple>>, &'static str);

/// The recipe of a sample.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Program {
    pub(super) core: Arc<program::Program>,
    template: Arc<Template>,
    /// The form of each column in Python.
    forms: Vec<Form>,
    /// The columns whose owner may move their memory, with the leaf of each.
    movable: Vec<(usize, Py<Rows>)>,
    /// The collation of batches; None to stack.
    collation: Option<Collation>,
}

#[pymethods]
impl Program {
    #[new]
    fn new(columns: &Bound<'_, PyList>, template: &Bound<'_, PyAny>) -> PyResult<Program> {
        let columns = columns
            .iter()
            .map(|column| match column.cast_into::<Column>() {
                Ok(column) => Ok(column),
                Err(other) => {
                    let message = format!(
                        "not a native column: {}",
                        other.into_inner().get_type().name()?
                    );
                    Err(PyTypeError::new_err(message))
                }
            });
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let leaves: Vec<_> = columns
            .iter()
            .map(|column| column.get().core.clone())
            .collect();
        let lengths: Vec<usize> = leaves.iter().map(|leaf| leaf.len()).collect();
        let mut forms = vec![None; leaves.len()];
        let template = Template::parse(template, &mut forms)?;
        let forms = forms.into_iter().map(|form| form.unwrap_or(Form::Tensor));
        let forms: Vec<Form> = forms.collect();
        for (form, leaf) in forms.iter().zip(&leaves) {
            form.check(leaf.layout())?;
        }
        let lists = forms.iter().map(|form| *form == Form::List).collect();
        let Some(core) = program::Program::new(leaves, lists) else {
            let message = format!("columns must have one length; they have {lengths:?}");
            return Err(PyValueError::new_err(message));
        };
        let movable = columns.iter().enumerate().flat_map(|(leaf, column)| {
            let rows = column::movable(column).into_iter();
            rows.map(move |rows| (leaf, rows))
        });
        Ok(Program {
            core: Arc::new(core),
            template: Arc::new(template),
            forms,
            movable: movable.collect(),
            collation: None,
        })
    }

    #[pyo3(signature = (rules, parts, batch, *, wrap=None, asks=false))]
    fn collated(
        &self,
        py: Python<'_>,
        rules: Vec<Bound<'_, Rule>>,
        parts: Vec<(usize, String)>,
        batch: &Bound<'_, PyAny>,
        wrap: Option<Py<PyAny>>,
        asks: bool,
    ) -> PyResult<Program> {
        let (core, collation) =
            Collation::read(&self.core, &self.forms, &rules, parts, batch, wrap, asks)?;
        let movable = self.movable.iter();
        let movable = movable.map(|(leaf, rows)| (*leaf, rows.clone_ref(py)));
        Ok(Program {
            core: Arc::new(core),
            template: self.template.clone(),
            forms: self.forms.clone(),
            movable: movable.collect(),
            collation: Some(collation),
        })
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    #[pyo3(signature = (index, *, seed=0, max_pixels=None, foreign=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        index: i64,
        seed: u64,
        max_pixels: Option<u64>,
        foreign: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.collation.is_some() {
            return Err(PyValueError::new_err(
                "a program with rules makes batches only",
            ));
        }
        self.check(py, None)?;
        let options = Options {
            seed,
            switches: Switches { max_pixels },
            ..Options::default()
        };
        let decode = |refused: &_| {
            let decode = foreign.as_ref()?;
            Some(foreign::decode(decode, refused))
        };
        let fields = py.detach(|| self.core.sample(index, options, decode))?;
        let tensor = |field| tensor::of_field(py, field);
        self.build(py, fields, Unit::Sample, tensor)
    }

    fn batch<'py>(&self, py: Python<'py>, indices: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
        if self.core.fetches() {
            return Err(PyValueError::new_err("samples are read from files"));
        }
        self.check_batches(py)?;
        let fields = py.detach(|| self.core.batch(indices))?;
        self.check(py, None)?;
        self.build(py, fields, Unit::Batch, |field| tensor::of_field(py, field))
    }

    fn is_random(&self) -> bool {
        self.core.is_random()
    }

    fn has_images(&self) -> bool {
        self.core.has_images()
    }

    fn is_cheap(&self, samples: usize) -> bool {
        self.core.is_cheap(samples)
    }

    fn moved(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.moved_leaf(py)?.is_some())
    }

    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Vec<Leaf<'py>>> {
        let leaves = self.core.leaves().iter().map(|column| {
            let layout = column.layout();
            let shape = layout.shape.as_ref();
            let shape = shape.map(|shape| PyTuple::new(py, shape)).transpose()?;
            let dtype = match layout.kind {
                Kind::Text => "str",
                Kind::Bytes => "bytes",
                _ => layout.dtype.name(),
            };
            Ok((shape, dtype))
        });
        leaves.collect()
    }
}

impl Program {
    /// Puts fields into the structure, each in its form; `tensor` makes tensors of them.
    pub(super) fn build<'py>(
        &self,
        py: Python<'py>,
        fields: Vec<Field>,
        unit: Unit,
        tensor: impl Fn(Dense) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(collation) = &self.collation {
            return collation.build(py, fields, &self.forms, &tensor);
        }
        let leaves = fields.into_iter().zip(&self.forms);
        let leaves = leaves.map(|(field, form)| form.value(py, field, unit, &tensor));
        let leaves = leaves.collect::<PyResult<Vec<_>>>()?;
        self.template.fill(py, &leaves, unit)
    }

    /// Converts the error of a batch; if the shapes of its samples caused it, adds a note with advice.
    pub(super) fn advised(&self, py: Python<'_>, error: Error) -> PyErr {
        let note = match &error {
            Error::Leaf { leaf, source } => match &**source {
                Error::Unequal { first, other, .. } | Error::UnequalLists { first, other } => {
                    self.advice(py, *leaf, first, other).ok()
                }
                _ => None,
            },
            _ => None,
        };
        let raised = PyErr::from(error);
        if let Some(note) = note {
            // without its note the exception is still the right one
            let _ = raised
                .value(py)
                .call_method1(intern!(py, "add_note"), (note,));
        }
        raised
    }

    fn advice<'py>(
        &self,
        py: Python<'py>,
        leaf: usize,
        first: &[usize],
        other: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let path = self.template.path(py, leaf)?.unwrap_or_default();
        let stacking = py.import(intern!(py, "fastload.collate.stacking"))?;
        let shapes = (PyTuple::new(py, first)?, PyTuple::new(py, other)?);
        stacking.call_method1("advice", (PyTuple::new(py, path)?, shapes.0, shapes.1))
    }

    /// Raises if the samples cannot be batched, and if [`Program::check`] does.
    pub(super) fn check_batches(&self, py: Python<'_>) -> PyResult<()> {
        if self.forms.contains(&Form::Pillow) {
            let message = "a batch cannot hold PIL images; only a sample can";
            return Err(PyValueError::new_err(message));
        }
        self.check(py, None)
    }

    /// Raises if an owner exchanged memory unnoticed: a sample, or the batch `seq`, may have been read from
    /// freed memory.
    pub(super) fn check(&self, py: Python<'_>, seq: Option<u64>) -> PyResult<()> {
        let Some(leaf) = self.moved_leaf(py)? else {
            return Ok(());
        };
        let path = self.template.path(py, leaf)?.unwrap_or_default();
        let fields = py.import(intern!(py, "fastload.collate.fields"))?;
        let title = fields.call_method1("title", (PyTuple::new(py, &path)?,))?;
        let tensor = if path.is_empty() {
            "the tensor of the dataset".into()
        } else {
            format!("the tensor of field {title}")
        };
        Err(Error::Moved { tensor, seq }.into())
    }

    /// Returns the first leaf whose memory has moved.
    fn moved_leaf(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        for (leaf, rows) in &self.movable {
            if rows.get().moved(py)? {
                return Ok(Some(*leaf));
            }
        }
        Ok(None)
    }
}
