//! Columns, as Python makes them.
#![allow(unsafe_code)]

use std::ptr::with_exposed_provenance;
use std::sync::Weak;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::error::unknown;
use super::files::{blobs, no_bytes};
use super::{action, transform, value};
use crate::column::{self, Binary, Constants, Conversion, Layout, Numbers, Operator};
use crate::decode::Reading;
use crate::image::{Key, Shape};
use crate::memory::{Dtype, ReadGuard, View, drop_after_readers};
use crate::program::{self, Source};
use crate::sync::{Arc, Mutex, lock};
use crate::{Error, Result};

/// A column of a dataset; a kind of column that has methods is a class of its own.
#[pyclass(frozen, subclass, module = "fastload._lib")]
pub(super) struct Column {
    pub(super) core: Arc<dyn column::Column>,
    /// The rows that this column reads and whose owner may move them; empty for rows themselves.
    movable: Vec<Py<Rows>>,
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.core.len()
    }
}

impl Column {
    /// Makes a column that reads no other.
    pub(super) fn alone(core: impl column::Column + 'static) -> Column {
        Column {
            core: Arc::new(core),
            movable: Vec::new(),
        }
    }

    /// Makes a column over others; objects that are not columns are ignored.
    pub(super) fn over<'a, 'py: 'a, T>(
        core: Arc<dyn column::Column>,
        others: impl IntoIterator<Item = &'a Bound<'py, T>>,
    ) -> Column
    where
        T: 'a,
    {
        let others = others
            .into_iter()
            .filter_map(|other| other.as_any().cast::<Column>().ok());
        Column {
            core,
            movable: others.flat_map(movable).collect(),
        }
    }
}

/// Returns the rows that a column reads and whose owner may move them.
pub(super) fn movable(column: &Bound<'_, Column>) -> Vec<Py<Rows>> {
    match column.cast::<Rows>() {
        Ok(rows) if rows.get().tensor.is_some() => vec![rows.clone().unbind()],
        Ok(_) => Vec::new(),
        Err(_) => {
            let rows = column.get().movable.iter();
            rows.map(|rows| rows.clone_ref(column.py())).collect()
        }
    }
}

/// Fixed-size rows of one array, shared without a copy.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Rows {
    core: column::Rows,
    /// The owner, if it is a tensor: torch moves its memory when it is shared with another process.
    tensor: Option<Py<PyAny>>,
}

#[pymethods]
impl Rows {
    #[new]
    #[pyo3(signature = (pointer, shape, strides_bytes, dtype, owner, *steps))]
    fn new(
        py: Python<'_>,
        pointer: usize,
        shape: Vec<usize>,
        strides_bytes: Vec<isize>,
        dtype: &str,
        owner: Py<PyAny>,
        steps: Vec<Bound<'_, PyTuple>>,
    ) -> PyResult<PyClassInitializer<Rows>> {
        let dtype = parse_dtype(dtype)?;
        let borrowed = py.import(intern!(py, "fastload.memory.borrowed"))?;
        let (storage, kept): (Option<Py<Storage>>, Py<PyAny>) =
            borrowed.call_method1("hold", (&owner,))?.extract()?;
        let tensor = storage.is_some().then(|| owner.clone_ref(py));
        // It may have moved since the caller read the address; from here on moves are followed.
        let pointer = tensor
            .as_ref()
            .map_or(Ok(pointer), |tensor| address(py, tensor))?;
        let rows = rows(
            pointer,
            &shape,
            &strides_bytes,
            dtype,
            Box::new((owner, kept)),
        )?;
        if let Some(storage) = storage {
            storage.get().add(rows.view());
        }
        let steps: Vec<_> = steps.iter().map(conversion).collect::<PyResult<_>>()?;
        let to = steps.iter().rev().find_map(Conversion::to);
        let rows = rows.converted(steps).ok_or_else(|| {
            let (from, to) = (dtype.name(), to.unwrap_or(dtype).name());
            PyValueError::new_err(format!("cannot read elements of {from} as {to}"))
        })?;
        let column = Column::alone(rows.clone());
        let rows = Rows { core: rows, tensor };
        Ok(PyClassInitializer::from(column).add_subclass(rows))
    }

    pub(super) fn moved(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(tensor) = &self.tensor else {
            return Ok(false);
        };
        Ok(address(py, tensor)? != self.core.address())
    }
}

/// Reads `("cast", dtype)`, `("table", dtype, elements)` or `(symbol, is_left, constants, inner)`.
fn conversion(step: &Bound<'_, PyTuple>) -> PyResult<Conversion> {
    let name: String = step.get_item(0)?.extract()?;
    let arguments = step.get_slice(1, step.len());
    if name == "cast" {
        let (dtype,): (String,) = arguments.extract()?;
        return Ok(Conversion::Cast(parse_dtype(&dtype)?));
    }
    if name == "table" {
        let (dtype, elements): (String, Vec<u8>) = arguments.extract()?;
        return Ok(Conversion::Table(parse_dtype(&dtype)?, elements));
    }
    let (is_left, constants, inner): (bool, Vec<u8>, usize) = arguments.extract()?;
    let operator = match (name.as_str(), is_left) {
        ("+", _) => Operator::Add,
        ("*", _) => Operator::Multiply,
        ("-", true) => Operator::Subtract,
        ("-", false) => Operator::SubtractFrom,
        ("/", true) => Operator::Divide,
        ("/", false) => Operator::DivideInto,
        _ => return Err(unknown("conversion", &name)),
    };
    let (values, rest) = constants.as_chunks();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("constants that are no float64"));
    }
    let values = values.iter().map(|&value| f64::from_ne_bytes(value));
    let values = values.collect();
    Ok(Conversion::Arithmetic(
        operator,
        Constants { values, inner },
    ))
}

/// Returns the address of a tensor's first element.
fn address(py: Python<'_>, tensor: &Py<PyAny>) -> PyResult<usize> {
    let address = tensor.bind(py).call_method0(intern!(py, "data_ptr"))?;
    address.extract()
}

/// The views of one of torch's storages, which may move.
#[pyclass(frozen, module = "fastload._lib")]
#[derive(Default)]
pub(super) struct Storage(Mutex<Vec<Weak<View>>>);

#[pymethods]
impl Storage {
    #[new]
    fn new() -> Storage {
        Storage::default()
    }

    fn moved(&self, old: usize, new: usize, len: usize, kept: Py<PyAny>) {
        for view in lock(&self.0).iter().filter_map(Weak::upgrade) {
            let Some(offset) = view.as_ptr().addr().checked_sub(old) else {
                continue; // it was made from the new memory
            };
            if offset < len {
                let place = with_exposed_provenance(new + offset);
                // SAFETY: by the stub the new memory has the same bytes, and the storage keeps it until the
                // next call; `kept` keeps the old memory for its readers.
                unsafe { view.relocate(place) };
            }
        }
        drop_after_readers(Box::new(kept));
    }

    #[allow(clippy::unused_self)] // readers are counted for all storages together
    fn is_read(&self) -> bool {
        ReadGuard::is_held()
    }
}

impl Storage {
    fn add(&self, view: &Arc<View>) {
        let mut views = lock(&self.0);
        views.retain(|view| view.strong_count() > 0);
        views.push(Arc::downgrade(view));
    }
}

pub(super) fn parse_dtype(dtype: &str) -> Result<Dtype> {
    let unknown = || Error::Dtype {
        name: dtype.to_owned(),
    };
    Dtype::from_name(dtype).ok_or_else(unknown)
}

fn rows(
    pointer: usize,
    shape: &[usize],
    strides: &[isize],
    dtype: Dtype,
    owner: Box<dyn std::any::Any + Send + Sync>,
) -> Result<column::Rows> {
    let (view, first) = value::view(pointer, shape, strides, dtype, owner)?;
    column::Rows::new(view, first, shape, strides, dtype).ok_or_else(|| Error::Layout {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
    })
}

/// A varying number of rows of an array for each sample.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Ragged {
    pub(super) core: column::Ragged,
}

#[pymethods]
impl Ragged {
    #[new]
    fn new(
        values: &Bound<'_, Rows>,
        offsets: &Bound<'_, Rows>,
    ) -> PyResult<PyClassInitializer<Ragged>> {
        let numbers = numbers(offsets, "offsets")?;
        let core = column::Ragged::new(values.get().core.clone(), numbers)?;
        let sources = [values.as_super(), offsets.as_super()];
        let column = Column::over(Arc::new(core.clone()), sources);
        Ok(PyClassInitializer::from(column).add_subclass(Ragged { core }))
    }
}

/// Makes a column of text: the UTF-8 bytes of all samples, joined.
#[pyfunction]
pub(super) fn text(letters: &Bound<'_, Ragged>) -> PyResult<Column> {
    joined(letters, Layout::text())
}

/// Makes a column of bytes: those of all samples, joined.
#[pyfunction]
pub(super) fn binary(bytes: &Bound<'_, Ragged>) -> PyResult<Column> {
    joined(bytes, Layout::bytes())
}

fn joined(bytes: &Bound<'_, Ragged>, layout: Layout) -> PyResult<Column> {
    let binary = Binary::new(bytes.get().core.clone(), layout).ok_or_else(no_bytes)?;
    Ok(Column::over(Arc::new(binary), [bytes.as_super()]))
}

/// Images, with the operations applied to each.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Image(Arc<program::Image>);

#[pymethods]
impl Image {
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        mode: &str,
        ops: &Bound<'_, PyList>,
        output: &Bound<'_, PyTuple>,
    ) -> PyResult<PyClassInitializer<Image>> {
        let memory = source;
        let source = if let Ok(rows) = source.cast::<Rows>() {
            Source::Decoded(rows.get().core.clone())
        } else {
            let Some(reading) = Reading::from_name(mode) else {
                return Err(unknown("mode", mode));
            };
            Source::Encoded(blobs(source)?, reading)
        };
        let pipeline = transform::pipeline(ops, output, source.known())?;
        let image = Arc::new(program::Image::new(source, pipeline)?);
        let column = Column::over(image.clone(), [memory]);
        Ok(PyClassInitializer::from(column).add_subclass(Image(image)))
    }

    #[pyo3(signature = (height, width, channels=3, *, seed=0, epoch=0, index=0, draw=0))]
    #[allow(clippy::too_many_arguments)] // the boundary's contract
    fn plan<'py>(
        slf: &Bound<'py, Self>,
        height: usize,
        width: usize,
        channels: usize,
        seed: u64,
        epoch: u64,
        index: u64,
        draw: u64,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let key = Key {
            seed,
            epoch,
            index,
            draw,
            leaf: 0,
        };
        let shape = Shape::new(height, width, channels);
        let plan = slf.get().0.pipeline().plan(shape, key)?;
        action::of_plan(slf.py(), &plan)
    }
}

/// Selects samples of a column, in any order.
#[pyfunction]
pub(super) fn select(column: &Bound<'_, Column>, indices: &Bound<'_, Rows>) -> PyResult<Column> {
    let numbers = numbers(indices, "indices")?;
    let select = column::Select::new(column.get().core.clone(), numbers)?;
    let sources = [column, indices.as_super()];
    Ok(Column::over(Arc::new(select), sources))
}

/// Joins several columns, one after the other.
#[pyfunction]
pub(super) fn concat(columns: Vec<Bound<'_, Column>>) -> PyResult<Column> {
    let parts = columns.iter().map(|column| column.get().core.clone());
    let concat = column::Concat::new(parts.collect())?;
    Ok(Column::over(Arc::new(concat), &columns))
}

/// Makes lists of a column's samples.
#[pyfunction]
pub(super) fn lists(items: &Bound<'_, Column>, offsets: &Bound<'_, Rows>) -> PyResult<Column> {
    let numbers = numbers(offsets, "offsets")?;
    let lists = column::Lists::new(items.get().core.clone(), numbers)?;
    let sources = [items, offsets.as_super()];
    Ok(Column::over(Arc::new(lists), sources))
}

/// Converts rows to indices, offsets or lengths.
pub(super) fn numbers(rows: &Bound<'_, Rows>, what: &str) -> PyResult<Numbers> {
    let core = &rows.get().core;
    Numbers::new(core.clone()).ok_or_else(|| {
        let (dtype, shape) = (core.dtype().name(), core.row_shape());
        let message =
            format!("{what} are one int64 or int32 per row, not {dtype} of row shape {shape:?}");
        PyValueError::new_err(message)
    })
}
