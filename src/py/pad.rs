//! Pads or joins fields of Python's samples.

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyList};

use super::error::unknown;
use super::tensor;
use super::value::Values;
use crate::Error;
use crate::collate::{self, Dense, Fill, RaggedLayout, Shape, Side, bytes_of, int64s, sizes};
use crate::error::Mismatch;
use crate::memory::{Destination, Dtype, lease};

/// Fields from this size on, in bytes, are copied detached from the interpreter.
const LARGE: usize = 1 << 16;

/// The rule by which a field is padded. See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Pad {
    pub(super) core: collate::Pad,
}

type Padded = (Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>);

#[pymethods]
impl Pad {
    #[new]
    #[pyo3(signature = (
        padding_value, *, padding_side, dims, named, to, max_length, truncate, shapes, pad_to_multiple_of
    ))]
    #[allow(clippy::too_many_arguments)] // keywords
    fn new(
        padding_value: &Bound<'_, PyAny>,
        padding_side: &str,
        dims: Option<Vec<isize>>,
        named: bool,
        to: Vec<usize>,
        max_length: Option<usize>,
        truncate: bool,
        shapes: Vec<usize>,
        pad_to_multiple_of: usize,
    ) -> PyResult<Pad> {
        let side = match padding_side {
            "left" => Side::Left,
            "right" => Side::Right,
            _ => return Err(unknown("padding_side", padding_side)),
        };
        Ok(Pad {
            core: collate::Pad {
                fill: number(padding_value)?,
                side,
                dims,
                named,
                sizes: collate::Sizes {
                    to,
                    max_length,
                    truncate,
                    rungs: shapes,
                    multiple_of: pad_to_multiple_of,
                },
            },
        })
    }

    #[pyo3(signature = (values, field, *, lengths=false, mask=None, allocate=None, threads=1))]
    #[allow(clippy::too_many_arguments)] // keywords
    fn collate(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyList>,
        field: &str,
        lengths: bool,
        mask: Option<(Option<usize>, bool)>,
        allocate: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<Padded> {
        let values = Values::read(values, field)?;
        let mismatch = mismatch(field);
        let layout = self.core.layout(values.shapes()).map_err(&mismatch)?;
        let element = self.core.fill.element(values.dtype).map_err(&mismatch)?;
        let side = self.core.side;
        let fill = &element[..values.dtype.itemsize()];
        let shape = sizes(values.len(), &layout.shape);
        let mut padded = field_of(shape, values.dtype, allocate)?;
        let out = padded.memory.bytes_mut();
        detached(py, out.len(), || {
            let samples: Vec<_> = values.arrays().collect();
            layout.write_by(threads, &samples, side, fill, out);
        });
        let padded = tensor::of_field(py, padded)?;
        let lengths = lengths.then(|| {
            let each = values.shapes();
            let lengths = each.flat_map(|shape| layout.lengths(shape));
            tensor::of_field(py, int64s(layout.lengths_shape(values.len()), lengths)?)
        });
        let mask = mask.map(|(rank, is_wide)| {
            let shape = layout.mask_shape(rank);
            let shape = shape.map_err(|least| mismatch(Mismatch::Mask { least }))?;
            let shape = sizes(values.len(), &shape);
            let dtype = if is_wide { Dtype::Int64 } else { Dtype::Bool };
            let mut mask = field_of(shape, dtype, None)?;
            let out = mask.memory.bytes_mut();
            detached(py, out.len(), || {
                layout.write_masks(values.shapes(), side, dtype.itemsize(), out);
            });
            tensor::of_field(py, mask)
        });
        Ok((padded, lengths.transpose()?, mask.transpose()?))
    }
}

type Flattened = (Py<PyAny>, Py<PyAny>, usize, usize);

/// See the stub.
#[pyfunction]
#[pyo3(signature = (values, field, *, allocate=None))]
pub(super) fn flatten(
    py: Python<'_>,
    values: &Bound<'_, PyList>,
    field: &str,
    allocate: Option<&Bound<'_, PyAny>>,
) -> PyResult<Flattened> {
    let values = Values::read(values, field)?;
    let flat = RaggedLayout::of(values.shapes()).map_err(mismatch(field))?;
    let mut all = field_of(flat.shape.clone(), values.dtype, allocate)?;
    let out = all.memory.bytes_mut();
    detached(py, out.len(), || {
        flat.write(values.arrays(), values.dtype.itemsize(), out);
    });
    let (shortest, longest) = flat.extremes();
    let offsets = flat.offsets.iter().copied();
    let offsets = int64s(sizes(flat.offsets.len(), &[]), offsets)?;
    let (all, offsets) = (tensor::of_field(py, all)?, tensor::of_field(py, offsets)?);
    Ok((all, offsets, shortest, longest))
}

/// Allocates a field of a batch, to be written.
pub(super) fn field_of(
    shape: Shape,
    dtype: Dtype,
    allocate: Option<&Bound<'_, PyAny>>,
) -> PyResult<Dense> {
    let bytes = bytes_of(&shape, dtype.itemsize());
    let memory = match allocate {
        Some(allocate) if (1..=isize::MAX as usize).contains(&bytes) => {
            tensor::allocated(allocate, &shape, dtype)?
        }
        _ => Destination::from(lease(bytes)?),
    };
    Ok(Dense {
        memory,
        shape,
        dtype,
    })
}

/// Runs `write`, which writes `bytes` bytes; detached from the interpreter if they are many.
pub(super) fn detached(py: Python<'_>, bytes: usize, write: impl FnOnce() + Send) {
    if bytes < LARGE {
        write();
    } else {
        py.detach(write);
    }
}

/// Makes errors with the field's name.
pub(super) fn mismatch(field: &str) -> impl Fn(Mismatch) -> Error {
    move |mismatch| mismatch.of_field(field)
}

/// Reads a Python number.
pub(super) fn number(value: &Bound<'_, PyAny>) -> PyResult<Fill> {
    if let Ok(complex) = value.cast::<PyComplex>() {
        return Ok(Fill::Complex(complex.real(), complex.imag()));
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(Fill::Float(float.extract()?));
    }
    if let Ok(whole) = value.extract::<i64>() {
        return Ok(Fill::Int(whole.into()));
    }
    Ok(Fill::Int(value.extract::<u64>()?.into()))
}
