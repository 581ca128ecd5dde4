//! Epoch plans, as Python makes and reads them, and the shapes that they are made of.

use std::num::NonZeroU32;

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::column::{Column, Rows, numbers};
use super::error::unknown;
use crate::collate::Shape;
use crate::column::{self, Kind};
use crate::error::Result;
use crate::memory::ReadGuard;
use crate::plan::{
    self, Budget, Cost, Long, PackedBatches, Ranks, Remainder, Shuffle, Strategy, TokenBatches,
};

/// The length of each sample of a dataset.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Lengths(plan::Lengths);

#[pymethods]
impl Lengths {
    #[new]
    fn new(source: &Bound<'_, Column>) -> PyResult<Lengths> {
        let py = source.py();
        if let Ok(rows) = source.cast::<Rows>() {
            let all = numbers(rows, "lengths")?;
            let lengths = py.detach(|| {
                let _guard = ReadGuard::take();
                let each = (0..all.len()).map(|index| Ok(all.get(index)));
                plan::Lengths::new(each)
            })?;
            return Ok(Lengths(lengths));
        }
        let core = source.get().core.clone();
        if core.layout().kind != Kind::Ragged {
            let message = "lengths are Rows of one number per sample, or those of ragged rows";
            return Err(PyTypeError::new_err(message));
        }
        let lengths = py.detach(|| {
            let _guard = ReadGuard::take();
            let rows = (0..core.len()).map(|index| {
                let shape = core.shape(index)?.unwrap_or_default();
                Ok(shape.first().map_or(0, |&rows| rows.cast_signed() as i64))
            });
            plan::Lengths::new(rows)
        })?;
        Ok(Lengths(lengths))
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Lengths> {
        let (all, []) = data.as_chunks::<4>() else {
            return Err(PyValueError::new_err("lengths have four bytes each"));
        };
        let all = all.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        Ok(Lengths(plan::Lengths::of(all)?))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let all = self.0.all();
        PyBytes::new_with(py, all.len() * 4, |out| {
            let (out, _) = out.as_chunks_mut::<4>();
            for (bytes, length) in out.iter_mut().zip(all) {
                *bytes = length.to_le_bytes();
            }
            Ok(())
        })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = slf.get_type().getattr("from_bytes")?;
        Ok((make, (slf.get().to_bytes(slf.py())?,)))
    }

    fn __len__(&self) -> usize {
        self.0.all().len()
    }

    fn __getitem__(&self, sample: usize) -> PyResult<u32> {
        let length = self.0.all().get(sample).copied();
        length.ok_or_else(|| PyIndexError::new_err("no such sample"))
    }

    fn total(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.total())
    }

    fn first_above(&self, py: Python<'_>, limit: u32) -> Option<usize> {
        py.detach(|| self.0.first_above(limit))
    }

    fn count_above(&self, py: Python<'_>, limit: u32) -> usize {
        py.detach(|| self.0.count_above(limit))
    }
}

/// The batches of one epoch, of all ranks.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Epoch(plan::Epoch);

#[pymethods]
impl Epoch {
    fn __len__(&self) -> usize {
        self.0.steps()
    }

    fn batch<'py>(
        &self,
        py: Python<'py>,
        step: usize,
        rank: usize,
    ) -> PyResult<(Bound<'py, PyList>, bool)> {
        let batch = self.0.batch(step, rank);
        let (samples, fillers) = batch.ok_or_else(|| PyIndexError::new_err("no such batch"))?;
        Ok((PyList::new(py, samples)?, fillers))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stats());
        let dict = PyDict::new(py);
        dict.set_item("steps", stats.steps)?;
        dict.set_item("batches", stats.batches)?;
        dict.set_item("samples", stats.samples)?;
        dict.set_item("dropped", stats.dropped)?;
        dict.set_item("repeated", stats.repeated)?;
        dict.set_item("fillers", stats.fillers)?;
        dict.set_item("waste", stats.waste)?;
        dict.set_item("tokens_p50", stats.tokens_p50)?;
        dict.set_item("tokens_p99", stats.tokens_p99)?;
        dict.set_item("tokens_max", stats.tokens_max)?;
        dict.set_item("samples_max", stats.samples_max)?;
        Ok(dict)
    }
}

/// Plans batches of samples of similar length.
#[pyfunction]
#[pyo3(signature = (
    lengths, *, max_tokens, max_batch_size, cost, quadratic, window, batch_multiple, limit, overlong,
    longest_first, drop_last, shuffle, world, remainder,
))]
#[allow(clippy::too_many_arguments)] // the boundary's contract
pub(super) fn plan_token_batches(
    py: Python<'_>,
    lengths: &Lengths,
    max_tokens: Option<u64>,
    max_batch_size: Option<usize>,
    cost: &str,
    quadratic: u32,
    window: usize,
    batch_multiple: usize,
    limit: u32,
    overlong: &str,
    longest_first: bool,
    drop_last: bool,
    shuffle: Option<(u64, u64)>,
    world: usize,
    remainder: &str,
) -> PyResult<Epoch> {
    let cost = match cost {
        "padded" => Cost::Padded,
        "sum" => Cost::Sum,
        "quadratic" => Cost::Quadratic(quadratic),
        _ => return Err(unknown("cost", cost)),
    };
    let multiple = batch_multiple.max(1);
    let samples = max_batch_size.unwrap_or(usize::MAX);
    let batches = TokenBatches {
        budget: Budget {
            tokens: max_tokens,
            cost,
            samples: (samples / multiple).max(1).saturating_mul(multiple),
            multiple,
        },
        window,
        limit,
        long: parse_overlong(overlong)?,
        drop_last,
        longest_first,
    };
    let ranks = ranks(world, remainder)?;
    let shuffle = shuffling(shuffle);
    Ok(Epoch(
        py.detach(|| batches.plan(&lengths.0, shuffle, ranks)),
    ))
}

/// Plans batches of packed documents.
#[pyfunction]
#[pyo3(signature = (
    lengths, *, max_length, strategy, rows, window, overlong, drop_last, shuffle, world, remainder,
))]
#[allow(clippy::too_many_arguments)] // the boundary's contract
pub(super) fn plan_packed_batches(
    py: Python<'_>,
    lengths: &Lengths,
    max_length: NonZeroU32,
    strategy: &str,
    rows: usize,
    window: usize,
    overlong: &str,
    drop_last: bool,
    shuffle: Option<(u64, u64)>,
    world: usize,
    remainder: &str,
) -> PyResult<Epoch> {
    let batches = PackedBatches {
        room: max_length,
        strategy: parse_strategy(strategy)?,
        rows,
        window,
        long: parse_overlong(overlong)?,
        drop_last,
    };
    let ranks = ranks(world, remainder)?;
    let shuffle = shuffling(shuffle);
    Ok(Epoch(
        py.detach(|| batches.plan(&lengths.0, shuffle, ranks)),
    ))
}

fn shuffling(keys: Option<(u64, u64)>) -> Option<Shuffle> {
    keys.map(|(seed, epoch)| Shuffle { seed, epoch })
}

fn ranks(world: usize, remainder: &str) -> PyResult<Ranks> {
    let remainder = match remainder {
        "drop" => Remainder::Drop,
        "repeat" => Remainder::Repeat,
        "mask" => Remainder::Mask,
        _ => return Err(unknown("remainder", remainder)),
    };
    Ok(Ranks { world, remainder })
}

fn parse_overlong(overlong: &str) -> PyResult<Long> {
    match overlong {
        "truncate" => Ok(Long::Truncate),
        "keep" => Ok(Long::Keep),
        "drop" => Ok(Long::Drop),
        _ => Err(unknown("overlong", overlong)),
    }
}

pub(super) fn parse_strategy(strategy: &str) -> PyResult<Strategy> {
    match strategy {
        "best_fit" => Ok(Strategy::BestFit),
        "first_fit" => Ok(Strategy::FirstFit),
        "concat_split" => Ok(Strategy::ConcatSplit),
        _ => Err(unknown("strategy", strategy)),
    }
}

/// Stands for a dimension that a sample does not have.
const NO_DIMENSION: i64 = -1;

/// The bytes of int64 `(samples, dimensions)`, and the number of dimensions.
type Table<'py> = (Bound<'py, PyBytes>, usize);

#[pyfunction]
pub(super) fn shapes<'py>(column: &Bound<'py, Column>) -> PyResult<Option<Table<'py>>> {
    let py = column.py();
    let core = column.get().core.clone();
    let found = py.detach(|| {
        let _guard = ReadGuard::take();
        table(&*core)
    });
    let Some((table, dimensions)) = found? else {
        return Ok(None);
    };
    let bytes = PyBytes::new_with(py, table.len() * size_of::<i64>(), |out| {
        let (out, _) = out.as_chunks_mut();
        for (bytes, size) in out.iter_mut().zip(table) {
            *bytes = size.to_ne_bytes();
        }
        Ok(())
    })?;
    Ok(Some((bytes, dimensions)))
}

/// Returns the shapes of all samples, each padded with [`NO_DIMENSION`], and the number of sizes for each; None if a
/// shape is known only when its sample is made.
fn table(column: &dyn column::Column) -> Result<Option<(Vec<i64>, usize)>> {
    let mut all = Vec::with_capacity(column.len());
    for index in 0..column.len() {
        match column.shape(index)? {
            Some(shape) => all.push(shape),
            None => return Ok(None),
        }
    }
    let dimensions = all.iter().map(Shape::len).max().unwrap_or(0);
    let mut table = vec![NO_DIMENSION; all.len() * dimensions];
    if dimensions > 0 {
        for (row, shape) in table.chunks_exact_mut(dimensions).zip(&all) {
            for (place, &size) in row.iter_mut().zip(shape) {
                *place = size.cast_signed() as i64;
            }
        }
    }
    Ok(Some((table, dimensions)))
}
