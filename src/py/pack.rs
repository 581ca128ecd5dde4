//! Packs documents of Python's samples side by side in rows.

use std::num::NonZeroU32;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::error::unknown;
use super::pad::{detached, field_of, mismatch, number};
use super::plan::parse_strategy;
use super::tensor;
use super::value::Values;
use crate::collate::{Array, Bins, Dense, Fill, Overlong, Packing, Shape, check_aligned, lengths};
use crate::memory::Dtype;

/// The rule by which documents are packed. See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Pack {
    pub(super) core: Packing,
}

/// Values, name, padding, and the value that replaces the first token of each piece.
type Field<'py> = (
    Bound<'py, PyList>,
    String,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
);

/// Fields, positions, numbers of the pieces, boundaries, longest piece, number of tokens.
type Packed = (
    Vec<Py<PyAny>>,
    Py<PyAny>,
    Option<Py<PyAny>>,
    Py<PyAny>,
    usize,
    usize,
);

#[pymethods]
impl Pack {
    #[new]
    #[allow(clippy::too_many_arguments)] // keywords
    #[pyo3(signature = (max_length, *, strategy, overlong, pad_rows, rows=None, first_position=0, empty=true))]
    fn new(
        max_length: NonZeroU32,
        strategy: &str,
        overlong: &str,
        pad_rows: bool,
        rows: Option<usize>,
        first_position: i64,
        empty: bool,
    ) -> PyResult<Pack> {
        let overlong = match overlong {
            "truncate" => Overlong::Truncate,
            "split" => Overlong::Split,
            "drop" => Overlong::Drop,
            "error" => Overlong::Error,
            _ => return Err(unknown("overlong", overlong)),
        };
        Ok(Pack {
            core: Packing {
                max_length,
                strategy: parse_strategy(strategy)?,
                overlong,
                pad_rows,
                rows,
                first_position,
                empty,
            },
        })
    }

    #[pyo3(signature = (fields, *, segments=false))]
    fn collate(&self, py: Python<'_>, fields: Vec<Field<'_>>, segments: bool) -> PyResult<Packed> {
        let read = fields.into_iter().map(PackedInput::read);
        let parts = read.collect::<PyResult<Vec<_>>>()?;
        let Some(tokens) = parts.first() else {
            return Err(PyValueError::new_err("there are no fields to pack"));
        };
        let lengths_of = |part: &PackedInput| {
            let lengths = lengths(part.values.shapes());
            lengths.map_err(mismatch(&part.field))
        };
        let lengths = lengths_of(tokens)?;
        for part in &parts[1..] {
            let own = lengths_of(part)?;
            check_aligned(&own, &lengths).map_err(mismatch(&part.field))?;
        }
        let bins = self.core.bins(&lengths).map_err(mismatch(&tokens.field))?;
        let fields = parts.iter().map(|part| part.pack(py, &bins));
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        let positions = int64s(py, &bins, |out| {
            bins.write_positions(self.core.first_position, out);
        })?;
        let segments = segments.then(|| {
            int64s(py, &bins, |out| {
                bins.write_segments(1, Dtype::Int64, out);
            })
        });
        Ok((
            fields,
            positions,
            segments.transpose()?,
            tensor::of_field(py, bins.dense_boundaries()?)?,
            bins.longest(),
            bins.tokens(),
        ))
    }
}

/// One field of the samples.
struct PackedInput {
    values: Values,
    field: String,
    fill: Fill,
    start: Option<Fill>,
}

impl PackedInput {
    fn read((values, field, fill, start): Field<'_>) -> PyResult<PackedInput> {
        Ok(PackedInput {
            values: Values::read(&values, &field)?.widen(),
            field,
            fill: number(&fill)?,
            start: start.map(|start| number(&start)).transpose()?,
        })
    }

    fn pack(&self, py: Python<'_>, bins: &Bins) -> PyResult<Py<PyAny>> {
        let dtype = self.values.dtype;
        let element = |fill: Fill| fill.element(dtype).map_err(mismatch(&self.field));
        let fill = element(self.fill)?;
        let start = self.start.map(element).transpose()?;
        let size = dtype.itemsize();
        let mut dense = field_of(Shape::from_slice(&bins.shape()), dtype, None)?;
        let out = dense.memory.bytes_mut();
        detached(py, out.len(), || {
            let samples: Vec<Array<'_>> = self.values.arrays().collect();
            let start = start.as_ref().map(|start| &start[..size]);
            bins.write(&samples, &fill[..size], start, out);
        });
        tensor::of_field(py, dense)
    }
}

/// Makes an int64 tensor of the shape of the rows.
fn int64s(
    py: Python<'_>,
    bins: &Bins,
    write: impl FnOnce(&mut [u8]) + Send,
) -> PyResult<Py<PyAny>> {
    let mut dense: Dense = field_of(Shape::from_slice(&bins.shape()), Dtype::Int64, None)?;
    let out = dense.memory.bytes_mut();
    detached(py, out.len(), || write(out));
    tensor::of_field(py, dense)
}
