//! Tuples of `fastload.transforms` and of lowered transforms to a pipeline.
//!
//! The user's arguments were checked, and named in errors, where the tuples were made.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::image::random::{RandomFlip, RandomResizedCrop};
use crate::image::{Filter, Kernel, Layout, Op, Output, PassOrder, Pipeline, Size, Table};
use crate::memory::Dtype;

/// Makes a pipeline of `ops` and what is written in the end; `source` is what is known of the images.
///
/// # Errors
///
/// `ValueError`: operations that do not fit together, or a tuple of no known form.
pub(super) fn pipeline(
    ops: &Bound<'_, PyList>,
    output: &Bound<'_, PyTuple>,
    source: (Option<(usize, usize)>, Option<usize>),
) -> PyResult<Pipeline> {
    let ops = ops
        .iter()
        .map(|op| parse(op.cast::<PyTuple>()?))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(Pipeline::new(ops, parse_output(output)?, source)?)
}

fn parse(op: &Bound<'_, PyTuple>) -> PyResult<Op> {
    let name: String = op.get_item(0)?.extract()?;
    let values = op.get_slice(1, op.len());
    match name.as_str() {
        "resize" => {
            let (size, longest, kernel): (Bound<'_, PyAny>, Option<usize>, Bound<'_, PyAny>) =
                values.extract()?;
            let size = if let Ok(size) = size.extract() {
                Size::Shorter { size, longest }
            } else {
                let (height, width) = size.extract()?;
                Size::Exact { height, width }
            };
            Ok(Op::Resize(size, parse_kernel(&kernel)?))
        }
        "center_crop" => {
            let (height, width) = values.extract()?;
            Ok(Op::CenterCrop { height, width })
        }
        "flip" => {
            let (p, vertical) = values.extract()?;
            Ok(Op::RandomFlip(RandomFlip { p, vertical }))
        }
        "random_resized_crop" => {
            let (size, scale, ratio, kernel): (_, _, _, Bound<'_, PyAny>) = values.extract()?;
            Ok(Op::RandomResizedCrop(RandomResizedCrop {
                size,
                scale,
                ratio,
                kernel: parse_kernel(&kernel)?,
            }))
        }
        _ => Err(unknown(op)),
    }
}

/// Reads `("pillow" | "pillow13", filter)`.
fn parse_kernel(kernel: &Bound<'_, PyAny>) -> PyResult<Kernel> {
    let (library, filter): (String, String) = kernel.extract()?;
    let filter = Filter::from_name(&filter).ok_or_else(|| unknown(kernel))?;
    match library.as_str() {
        "pillow" => Ok(Kernel::Pillow(filter, PassOrder::AcrossFirst)),
        "pillow13" => Ok(Kernel::Pillow(filter, PassOrder::Pillow13)),
        _ => Err(unknown(kernel)),
    }
}

/// Reads `("bytes", layout)` or `("table", layout, dtype, channels, elements)`.
fn parse_output(output: &Bound<'_, PyTuple>) -> PyResult<Output> {
    let (kind, layout): (String, String) = output.get_slice(0, 2).extract()?;
    let layout = match layout.as_str() {
        "hwc" => Layout::Hwc,
        "chw" => Layout::Chw,
        _ => return Err(unknown(output)),
    };
    match kind.as_str() {
        "bytes" => Ok(Output::Bytes(layout)),
        "table" => {
            let (dtype, channels, entries): (String, usize, Vec<u8>) =
                output.get_slice(2, output.len()).extract()?;
            let table = Dtype::from_name(&dtype)
                .and_then(|dtype| Table::new(dtype, channels, entries.into()));
            Ok(Output::Table(table.ok_or_else(|| unknown(output))?, layout))
        }
        _ => Err(unknown(output)),
    }
}

fn unknown(found: &Bound<'_, PyAny>) -> PyErr {
    PyValueError::new_err(format!("not understood: {found}"))
}
