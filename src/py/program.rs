//! Programs, as Python makes them: columns, and the structure that a sample puts them into.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::column::{Image, Rows};
use super::enter::Enter;
use super::template::{Form, Template};
use super::tensor;
use crate::Error;
use crate::decode::Switches;
use crate::program::{self, Options};
use crate::sync::Arc;

/// Shape and dtype of a leaf.
type Leaf<'py> = (Option<Bound<'py, PyTuple>>, &'static str);

/// What is done for one sample.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Program {
    pub(super) core: Arc<program::Program>,
    pub(super) template: Template,
    /// The columns whose memory can be moved by its owner.
    movable: Vec<Py<Rows>>,
}

#[pymethods]
impl Program {
    #[new]
    fn new(columns: &Bound<'_, PyList>, template: &Bound<'_, PyAny>) -> PyResult<Program> {
        let cores = columns.iter().map(|column| {
            if let Ok(rows) = column.cast::<Rows>() {
                return Ok(rows.get().leaf.clone());
            }
            if let Ok(image) = column.cast::<Image>() {
                return Ok(image.get().leaf.clone());
            }
            let message = format!("not a native column: {}", column.get_type().name()?);
            Err(PyTypeError::new_err(message))
        });
        let cores = cores.collect::<PyResult<Vec<_>>>()?;
        let lengths: Vec<usize> = cores.iter().map(|column| column.len()).collect();
        let template = Template::parse(template, cores.len())?;
        let Some(core) = program::Program::new(cores) else {
            let message = format!("columns must have one length; they have {lengths:?}");
            return Err(PyValueError::new_err(message));
        };
        let rows = columns.iter().filter_map(|column| {
            let image = column.cast::<Image>().ok();
            let rows = image.and_then(|image| image.get().rows.as_ref());
            let rows = rows.map(|rows| rows.clone_ref(column.py()));
            rows.or_else(|| column.cast_into::<Rows>().ok().map(Bound::unbind))
        });
        let movable = rows.filter(|rows| rows.get().is_movable()).collect();
        Ok(Program {
            core: Arc::new(core),
            template,
            movable,
        })
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    #[pyo3(signature = (index, *, seed=0, truncated=false, max_pixels=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        index: i64,
        seed: u64,
        truncated: bool,
        max_pixels: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check(py)?;
        let options = Options {
            seed,
            switches: Switches {
                truncated,
                max_pixels,
            },
            ..Options::default()
        };
        let fields = py.enter(|| self.core.sample(index, options))?;
        let leaves = fields.into_iter().map(|field| tensor::of_field(py, field));
        let leaves = leaves.collect::<PyResult<Vec<_>>>()?;
        self.template.fill(py, &leaves, Form::Sample)
    }

    fn is_random(&self) -> bool {
        self.core.is_random()
    }

    fn moved(&self, py: Python<'_>) -> PyResult<bool> {
        for rows in &self.movable {
            if rows.get().moved(py)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Vec<Leaf<'py>>> {
        let leaves = self.core.leaves().iter().map(|column| {
            let shape = column
                .fixed_shape()
                .map(|shape| PyTuple::new(py, shape))
                .transpose()?;
            Ok((shape, column.dtype().name()))
        });
        leaves.collect()
    }
}

impl Program {
    /// Refuses to read memory that its owner has given up.
    pub(super) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.moved(py)? {
            return Err(Error::Moved.into());
        }
        Ok(())
    }
}
