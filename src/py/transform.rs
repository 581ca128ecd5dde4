//! Tuples of `fastload.transforms` to a pipeline.
//!
//! The user's arguments were checked, and named in errors, where the tuples were made.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::image::{Filter, Op, PassOrder, Pipeline, Size};

/// Makes a pipeline of `ops`.
///
/// # Errors
///
/// `ValueError`: operations that do not fit together, or a tuple of no known form.
pub(super) fn pipeline(ops: &Bound<'_, PyList>) -> PyResult<Pipeline> {
    let ops = ops
        .iter()
        .map(|op| parse(op.cast::<PyTuple>()?))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(Pipeline::new(ops)?)
}

fn parse(op: &Bound<'_, PyTuple>) -> PyResult<Op> {
    let name: String = op.get_item(0)?.extract()?;
    match name.as_str() {
        "resize" => {
            let (_, size, filter, tall_first): (String, Bound<'_, PyAny>, String, bool) =
                op.extract()?;
            let filter = Filter::from_name(&filter).ok_or_else(|| unknown(op))?;
            let order = if tall_first {
                PassOrder::Pillow13
            } else {
                PassOrder::AcrossFirst
            };
            Ok(Op::Resize {
                size: parse_size(&size)?,
                filter,
                order,
            })
        }
        "center_crop" => {
            let (_, height, width): (String, usize, usize) = op.extract()?;
            Ok(Op::CenterCrop { height, width })
        }
        "to_tensor" => Ok(Op::ToTensor),
        "normalize" => {
            let (_, mean, std): (String, [f32; 3], [f32; 3]) = op.extract()?;
            Ok(Op::Normalize { mean, std })
        }
        _ => Err(unknown(op)),
    }
}

fn parse_size(size: &Bound<'_, PyAny>) -> PyResult<Size> {
    if let Ok(shorter) = size.extract() {
        return Ok(Size::Shorter(shorter));
    }
    let (height, width) = size.extract()?;
    Ok(Size::Exact { height, width })
}

fn unknown(op: &Bound<'_, PyTuple>) -> PyErr {
    PyValueError::new_err(format!("unknown operation {op}"))
}
