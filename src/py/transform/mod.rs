//! Converts tuples of `fastload.transforms` and of lowered transforms to a pipeline.
//!
//! The code that made the tuples checked the user's arguments, and named them in errors.

mod random;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::image::{
    Action, Filter, GaussianBlur, Interpolation, Kernel, Layout, Luma, Movement, Op, Output, Pad,
    Padding, PassOrder, Pipeline, Reduce, Region, Rotation, Size, SourceBox, Table, Turn, torch,
};
use crate::memory::Dtype;

/// Makes a pipeline of `ops` and an output; `source` says what is known about the images.
///
/// # Errors
///
/// `ValueError`: operations that do not fit together, or a tuple of unknown form.
pub(super) fn pipeline(
    ops: &Bound<'_, PyList>,
    output: &Bound<'_, PyTuple>,
    source: (Option<(usize, usize)>, Option<usize>),
) -> PyResult<Pipeline> {
    let ops = parse_all(ops)?;
    Ok(Pipeline::new(ops, parse_output(output)?, source)?)
}

pub(super) fn parse_all(ops: &Bound<'_, PyList>) -> PyResult<Vec<Op>> {
    let ops = ops.iter().map(|op| parse(op.cast::<PyTuple>()?));
    ops.collect()
}

fn parse(op: &Bound<'_, PyTuple>) -> PyResult<Op> {
    let name: String = op.get_item(0)?.extract()?;
    let values = op.get_slice(1, op.len());
    match name.as_str() {
        "resize" | "resize_part" | "reduce" => parse_scaling(&name, op),
        "center_crop" => {
            let (height, width) = values.extract()?;
            Ok(Op::CenterCrop { height, width })
        }
        "crop" => {
            let (top, left, height, width) = only(op)?;
            Ok(Op::Action(Action::Crop(Region::new(
                top, left, height, width,
            ))))
        }
        "flip_fixed" => Ok(Op::Action(if only(op)? {
            Action::FlipVertical
        } else {
            Action::FlipHorizontal
        })),
        "turn" => Ok(Op::Action(Action::Turn(match only(op)? {
            1 => Turn::Left,
            2 => Turn::Half,
            3 => Turn::Right,
            _ => return Err(unknown(op)),
        }))),
        "pad" => {
            let ((left, top, right, bottom), fill, mode): (_, _, String) = values.extract()?;
            Ok(Op::Action(Action::Pad(Pad {
                left,
                top,
                right,
                bottom,
                mode: Padding::from_name(&mode).ok_or_else(|| unknown(op))?,
                fill,
            })))
        }
        "affine_fixed" => {
            let (angle, translate, scale, shear, center, name, fill): (
                _,
                _,
                _,
                _,
                _,
                String,
                Option<_>,
            ) = values.extract()?;
            Ok(Op::Movement(Movement {
                angle,
                translate,
                scale,
                shear,
                center,
                interpolation: parse_interpolation(&name, op)?,
                fill: fill.unwrap_or_default(),
                second: false,
            }))
        }
        "rotate_fixed" => {
            let (angle, name, expand, center, fill): (_, String, _, _, Option<_>) =
                values.extract()?;
            Ok(Op::Rotation(Rotation {
                angle,
                expand,
                center,
                interpolation: parse_interpolation(&name, op)?,
                fill: fill.unwrap_or_default(),
            }))
        }
        _ => match random::parse(&name, op)? {
            Some(op) => Ok(op),
            None => Ok(Op::Action(parse_colour(&name, op)?)),
        },
    }
}

fn parse_scaling(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Op> {
    let values = op.get_slice(1, op.len());
    match name {
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
        "resize_part" => {
            let ((height, width), kernel, (left, top, right, bottom)): (_, Bound<'_, PyAny>, _) =
                values.extract()?;
            let kernel @ Kernel::Pillow(..) = parse_kernel(&kernel)? else {
                return Err(unknown(op));
            };
            Ok(Op::Action(Action::Resize {
                height,
                width,
                kernel,
                part: Some(SourceBox {
                    left,
                    top,
                    right,
                    bottom,
                }),
            }))
        }
        "reduce" => {
            let (down, across) = only(op)?;
            let reduce = Reduce::new(down, across).ok_or_else(|| unknown(op))?;
            Ok(Op::Action(Action::Reduce(reduce)))
        }
        _ => Err(unknown(op)),
    }
}

fn parse_colour(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Action> {
    Ok(match name {
        "brightness" => Action::Brightness(only(op)?),
        "contrast" => Action::Contrast(only(op)?),
        "saturation" => Action::Saturation(only(op)?),
        "hue" => Action::Hue(only(op)?),
        "sharpness" => Action::Sharpness(only(op)?),
        "invert" => Action::Invert,
        "posterize" => Action::Posterize(only(op)?),
        "solarize" => Action::Solarize(only(op)?),
        "autocontrast" => Action::Autocontrast,
        "equalize" => Action::Equalize,
        "gaussian_blur" => {
            let (across, down): (Vec<f32>, Vec<f32>) = op.get_slice(1, op.len()).extract()?;
            Action::GaussianBlur(GaussianBlur::new(across, down)?)
        }
        "grayscale" => {
            let (channels, library): (usize, String) = op.get_slice(1, op.len()).extract()?;
            match Luma::from_name(&library) {
                Some(luma) if [1, 3].contains(&channels) => Action::Grayscale { channels, luma },
                _ => return Err(unknown(op)),
            }
        }
        _ => return Err(unknown(op)),
    })
}

/// Reads the only argument of an operation.
fn only<'py, T: FromPyObjectOwned<'py>>(op: &Bound<'py, PyTuple>) -> PyResult<T> {
    op.get_item(1)?.extract::<T>().map_err(Into::into)
}

fn parse_interpolation(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Interpolation> {
    Interpolation::from_name(name).ok_or_else(|| unknown(op))
}

/// Reads `("pillow" | "pillow12.2" | "pillow13", filter)` or `("torch" | "torch_aliased", interpolation)`.
fn parse_kernel(kernel: &Bound<'_, PyAny>) -> PyResult<Kernel> {
    let (library, filter): (String, String) = kernel.extract()?;
    let pillow = |order| Filter::from_name(&filter).map(|filter| Kernel::Pillow(filter, order));
    let torch = |antialias| torch::Interpolation::from_name(&filter, antialias).map(Kernel::Torch);
    let kernel_of = match library.as_str() {
        "torch" => torch(true),
        "torch_aliased" => torch(false),
        name => PassOrder::from_name(name).and_then(pillow),
    };
    kernel_of.ok_or_else(|| unknown(kernel))
}

/// Reads `("bytes", layout)` or `("table", layout, dtype, channels, elements)`.
fn parse_output(output: &Bound<'_, PyTuple>) -> PyResult<Output> {
    let (kind, layout): (String, String) = output.get_slice(0, 2).extract()?;
    let layout = match layout.as_str() {
        "hwc" => Layout::Hwc,
        "chw" => Layout::Chw,
        "array" => Layout::Array,
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
    PyValueError::new_err(format!("unknown operation: {found}"))
}
