//! The plan of an image, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::image::erasure::{Erasure, Value};
use crate::image::{Action, Affine, Kernel, Pad, Plan, Region, SourceBox, Turn};

type Fill = (u8, u8, u8);

/// Makes a list of tuples, each the name of an action and its arguments.
pub(super) fn of_plan<'py>(py: Python<'py>, plan: &Plan) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let actions = plan.actions.iter().map(|action| of_action(py, action));
    let erased = plan.erased.iter().map(|erasure| of_erasure(py, erasure));
    actions.chain(erased).collect()
}

fn of_action<'py>(py: Python<'py>, action: &Action) -> PyResult<Bound<'py, PyTuple>> {
    match *action {
        Action::Crop(region) => ("crop", sides(region)).into_pyobject(py),
        Action::Resize {
            height,
            width,
            kernel,
            part: None,
        } => ("resize", (height, width), of_kernel(kernel)).into_pyobject(py),
        Action::Resize {
            height,
            width,
            kernel,
            part:
                Some(SourceBox {
                    left,
                    top,
                    right,
                    bottom,
                }),
        } => {
            let part = (left, top, right, bottom);
            ("resize_part", (height, width), of_kernel(kernel), part).into_pyobject(py)
        }
        Action::Reduce(reduce) => ("reduce", reduce.factors()).into_pyobject(py),
        Action::FlipHorizontal => ("flip", false).into_pyobject(py),
        Action::FlipVertical => ("flip", true).into_pyobject(py),
        Action::Pad(ref pad) => of_pad(pad).into_pyobject(py),
        Action::Turn(turn) => ("turn", quarters(turn)).into_pyobject(py),
        Action::Affine(Affine {
            matrix,
            size,
            interpolation,
            fill,
        }) => {
            let matrix = PyTuple::new(py, matrix)?;
            ("affine", matrix, size, interpolation.name(), of_fill(fill)).into_pyobject(py)
        }
        Action::GaussianBlur(ref blur) => {
            let (across, down) = blur.weights();
            ("gaussian_blur", across.to_vec(), down.to_vec()).into_pyobject(py)
        }
        Action::Brightness(factor) => ("brightness", factor).into_pyobject(py),
        Action::Contrast(factor) => ("contrast", factor).into_pyobject(py),
        Action::Saturation(factor) => ("saturation", factor).into_pyobject(py),
        Action::Hue(factor) => ("hue", factor).into_pyobject(py),
        Action::Sharpness(factor) => ("sharpness", factor).into_pyobject(py),
        Action::Grayscale { channels, luma } => {
            ("grayscale", channels, luma.name()).into_pyobject(py)
        }
        Action::Invert => ("invert",).into_pyobject(py),
        Action::Posterize(bits) => ("posterize", bits).into_pyobject(py),
        Action::Solarize(threshold) => ("solarize", threshold).into_pyobject(py),
        Action::Autocontrast => ("autocontrast",).into_pyobject(py),
        Action::Equalize => ("equalize",).into_pyobject(py),
    }
}

fn of_erasure<'py>(py: Python<'py>, erasure: &Erasure) -> PyResult<Bound<'py, PyTuple>> {
    let region = sides(erasure.region);
    match &erasure.value {
        Value::Elements(bytes) => ("erase", region, PyBytes::new(py, bytes)).into_pyobject(py),
        Value::Noise(_) => ("erase", region, "random").into_pyobject(py),
    }
}

fn of_pad(
    pad: &Pad,
) -> (
    &'static str,
    (usize, usize, usize, usize),
    Fill,
    &'static str,
) {
    let sides = (pad.left, pad.top, pad.right, pad.bottom);
    ("pad", sides, of_fill(pad.fill), pad.mode.name())
}

fn of_fill([red, green, blue]: [u8; 3]) -> Fill {
    (red, green, blue)
}

/// Returns the number of counter-clockwise quarter turns.
fn quarters(turn: Turn) -> u8 {
    match turn {
        Turn::Left => 1,
        Turn::Half => 2,
        Turn::Right => 3,
    }
}

/// Returns (top, left, height, width), the order of torchvision's functions.
fn sides(region: Region) -> (usize, usize, usize, usize) {
    (region.top, region.left, region.height, region.width)
}

fn of_kernel(kernel: Kernel) -> (&'static str, &'static str) {
    match kernel {
        Kernel::Pillow(filter, order) => (order.name(), filter.name()),
        Kernel::Torch(interpolation) => interpolation.names(),
    }
}
