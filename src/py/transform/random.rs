//! Converts tuples of operations with random parameters.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::{parse_all, parse_interpolation, parse_kernel, unknown};
use crate::image::random::{
    AreaRange, Augment, Augmenter, Choice, ColorJitter, Nested, Policy, Random, RandomAffine,
    RandomBlur, RandomCrop, RandomErasing, RandomFlip, RandomGrayscale, RandomResizedCrop,
    RandomRotation,
};
use crate::image::{GaussianBlur, Luma, Movement, Op, Pad, Padding, Rotation};

type Range = (f64, f64);

/// Reads an operation that draws; None if there is none of this name.
pub(super) fn parse(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Option<Op>> {
    let values = op.get_slice(1, op.len());
    let check = |fits: bool| fits.then_some(()).ok_or_else(|| unknown(op));
    Ok(Some(Op::Random(match name {
        "flip" => {
            let (p, vertical) = values.extract()?;
            Random::Flip(RandomFlip { p, vertical })
        }
        "random_crop" => Random::Crop(crop(&values)?),
        "random_resized_crop" => {
            let (size, scale, ratio, kernel): (_, _, _, Bound<'_, PyAny>) = values.extract()?;
            let kernels = match kernel.cast::<PyList>() {
                Ok(kernels) => kernels.iter().map(|kernel| parse_kernel(&kernel)).collect(),
                Err(_) => parse_kernel(&kernel).map(|kernel| vec![kernel]),
            }?;
            let area = AreaRange { scale, ratio };
            check(!kernels.is_empty() && fits(&area))?;
            Random::ResizedCrop(RandomResizedCrop {
                size,
                area,
                kernels,
            })
        }
        "color_jitter" => {
            let (brightness, contrast, saturation, hue) = values.extract()?;
            let mut ranges = [brightness, contrast, saturation, hue]
                .into_iter()
                .flatten();
            check(ranges.all(is_range))?;
            Random::Jitter(ColorJitter {
                brightness,
                contrast,
                saturation,
                hue,
            })
        }
        "random_grayscale" => {
            let (p, library): (_, String) = values.extract()?;
            let luma = Luma::from_name(&library).ok_or_else(|| unknown(op))?;
            Random::Grayscale(RandomGrayscale { p, luma })
        }
        "random_erasing" => {
            let (p, scale, ratio, value): (_, _, _, Bound<'_, PyAny>) = values.extract()?;
            let area = AreaRange { scale, ratio };
            check(fits(&area))?;
            let value = match value.extract::<String>() {
                Ok(word) if word == "random" => None,
                _ => Some(value.extract::<Vec<u8>>()?.into()),
            };
            Random::Erasing(RandomErasing { p, area, value })
        }
        "random_gaussian_blur" => {
            let (blurs,): (Vec<(Vec<f32>, Vec<f32>)>,) = values.extract()?;
            check(!blurs.is_empty())?;
            let blurs = blurs.into_iter();
            let blurs = blurs.map(|(across, down)| GaussianBlur::new(across, down));
            let blurs = blurs.collect::<Result<_, _>>()?;
            Random::Blur(RandomBlur { blurs })
        }
        "random_rotation" => {
            let (degrees, name, expand, center, fill): (_, String, _, _, Option<_>) =
                values.extract()?;
            check(is_range(degrees))?;
            let rotation = Rotation {
                angle: 0.0,
                expand,
                center,
                interpolation: parse_interpolation(&name, op)?,
                fill: fill.unwrap_or_default(),
            };
            Random::Rotation(RandomRotation { degrees, rotation })
        }
        "random_affine" => Random::Affine(affine(op)?),
        _ => return augment(name, op),
    })))
}

/// Reads `(degrees, translate, scale, shear, interpolation, fill, center, "v1" | "v2")`.
fn affine(op: &Bound<'_, PyTuple>) -> PyResult<RandomAffine> {
    type Shear = (f64, f64, f64, f64);
    let values = op.get_slice(1, 5);
    let (degrees, translate, scale, shear): (Range, _, Option<Range>, Option<Shear>) =
        values.extract()?;
    let (name, fill, center, version): (String, Option<_>, _, String) =
        op.get_slice(5, op.len()).extract()?;
    let shear =
        shear.map(|(least_x, most_x, least_y, most_y)| [(least_x, most_x), (least_y, most_y)]);
    let mut ranges = [degrees]
        .into_iter()
        .chain(scale)
        .chain(shear.into_iter().flatten());
    let is_known = matches!(version.as_str(), "v1" | "v2");
    if !is_known || !ranges.all(is_range) || scale.is_some_and(|(least, _)| least <= 0.0) {
        return Err(unknown(op));
    }
    Ok(RandomAffine {
        degrees,
        translate,
        scale,
        shear,
        movement: Movement {
            center,
            interpolation: parse_interpolation(&name, op)?,
            fill: fill.unwrap_or_default(),
            second: version == "v2",
            ..Movement::NONE
        },
    })
}

/// Reads operations that choose among augmentations. The last three values of each tuple are `(interpolation,
/// fill, "v1" | "v2")`.
fn augment(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Option<Op>> {
    let split = op.len().saturating_sub(3);
    let values = op.get_slice(1, split);
    let (choice, bins) = match name {
        "rand_augment" => {
            let (count, level, bins) = values.extract()?;
            if level >= bins {
                return Err(unknown(op));
            }
            (Choice::Several { count, level }, bins)
        }
        "trivial_augment_wide" => (Choice::One, values.extract::<(u32,)>()?.0),
        "auto_augment" => {
            let (policy,): (String,) = values.extract()?;
            let policy = Policy::from_name(&policy).ok_or_else(|| unknown(op))?;
            (Choice::Pair(policy), 10)
        }
        _ => return nested(name, op),
    };
    let (interpolation, fill, version): (String, Option<_>, String) =
        op.get_slice(split, op.len()).extract()?;
    if bins < 2 || !matches!(version.as_str(), "v1" | "v2") {
        return Err(unknown(op));
    }
    Ok(Some(Op::Random(Random::Augment(Augment {
        choice,
        augmenter: Augmenter {
            bins,
            wide: choice == Choice::One,
            second: version == "v2",
            interpolation: parse_interpolation(&interpolation, op)?,
            fill: fill.unwrap_or_default(),
        },
    }))))
}

/// Reads operations that contain others and decide whether to apply them.
fn nested(name: &str, op: &Bound<'_, PyTuple>) -> PyResult<Option<Op>> {
    let values = op.get_slice(1, op.len());
    Ok(Some(Op::Nested(match name {
        "apply" => {
            let (p, ops): (_, Bound<'_, PyList>) = values.extract()?;
            Nested::Apply(p, parse_all(&ops)?)
        }
        "choice" => {
            let (weights, lists): (Vec<f64>, Vec<Bound<'_, PyList>>) = values.extract()?;
            let sum = weights.iter().sum::<f64>();
            let positive = weights.iter().all(|&weight| weight >= 0.0);
            if weights.len() != lists.len() || !positive || !(sum > 0.0 && sum.is_finite()) {
                return Err(unknown(op));
            }
            let lists = lists.iter().map(parse_all).collect::<PyResult<Vec<_>>>()?;
            Nested::Choice(weights.into_iter().zip(lists).collect())
        }
        "order" => {
            let (ops,): (Bound<'_, PyList>,) = values.extract()?;
            Nested::Order(parse_all(&ops)?)
        }
        _ => return Ok(None),
    })))
}

/// Reads `(size, padding, pad_if_needed, fill, mode, "v1" | "v2")`.
fn crop(values: &Bound<'_, PyTuple>) -> PyResult<RandomCrop> {
    type Values = (
        (usize, usize),
        Option<[usize; 4]>,
        bool,
        [u8; 3],
        String,
        String,
    );
    let (size, padding, if_needed, fill, mode, version): Values = values.extract()?;
    if !matches!(version.as_str(), "v1" | "v2") {
        return Err(unknown(values));
    }
    let mode = Padding::from_name(&mode).ok_or_else(|| unknown(values))?;
    let pad = |[left, top, right, bottom]: [usize; 4]| Pad {
        left,
        top,
        right,
        bottom,
        mode,
        fill,
    };
    Ok(RandomCrop {
        size,
        padding: padding.map(pad),
        if_needed: if_needed.then(|| pad([0; 4])),
        second: version == "v2",
    })
}

/// Returns true if a crop can be drawn: both ranges ascend, and no ratio is 0.
fn fits(area: &AreaRange) -> bool {
    is_range(area.scale) && is_range(area.ratio) && area.scale.0 >= 0.0 && area.ratio.0 > 0.0
}

/// Returns true if torch would draw from the range: it ascends, and is finite.
fn is_range((least, most): Range) -> bool {
    least <= most && least.is_finite() && most.is_finite()
}
