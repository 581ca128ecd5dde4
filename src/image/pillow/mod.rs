//! Scaling as Pillow: weights of 22 bits, and 8 bits between the passes (`Resample.c`).
//!
//! Owns the filters of `PIL.Image.Resampling`, and which dimension is scaled first.

mod taps;

use std::f64::consts::PI;

use super::weights::{cubic, sinc};
pub(super) use taps::Taps;

/// The filter that weights source pixels when an image is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are Pillow's
pub enum Filter {
    Nearest,
    Box,
    Bilinear,
    Hamming,
    Bicubic,
    Lanczos,
}

/// The names are those of torchvision's `InterpolationMode`. In the order of the enum.
const NAMES: [(&str, Filter); 6] = [
    ("nearest", Filter::Nearest),
    ("box", Filter::Box),
    ("bilinear", Filter::Bilinear),
    ("hamming", Filter::Hamming),
    ("bicubic", Filter::Bicubic),
    ("lanczos", Filter::Lanczos),
];

impl Filter {
    /// Returns the filter that torchvision's `InterpolationMode` calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, filter)| *filter)
    }

    /// Returns its name in torchvision's `InterpolationMode`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Returns the distance from the centre beyond which every weight is zero, in pixels of the
    /// smaller image.
    fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.0,
            Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// Returns the weight at distance `x`, by the formulas (and the mix of single and double
    /// constants) of Pillow's `Resample.c`.
    fn weight(self, x: f64) -> f64 {
        match self {
            Self::Box => f64::from(u8::from(-0.5 < x && x <= 0.5)),
            Self::Bilinear => (1.0 - x.abs()).max(0.0),
            Self::Hamming => hamming(x.abs()),
            Self::Bicubic => cubic(x.abs(), -0.5),
            Self::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Self::Lanczos | Self::Nearest => 0.0,
        }
    }
}

fn hamming(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x >= 1.0 {
        return 0.0;
    }
    let x = x * PI;
    x.sin() / x * (f64::from(0.54_f32) + f64::from(0.46_f32) * x.cos())
}

/// The order of the two passes, as different versions of Pillow choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrder {
    /// Always across rows first: before Pillow 12.2.
    AcrossFirst,
    /// Down columns first when the image becomes lower and is over 100 times as high as wide
    /// (<https://github.com/python-pillow/Pillow/blob/12.2.0/src/PIL/Image.py>).
    Pillow12,
    /// Down columns first when the height loses more than twice the pixels that the width does
    /// (<https://github.com/python-pillow/Pillow/pull/9549>).
    Pillow13,
}

impl PassOrder {
    /// Returns the name of Pillow's versions that have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AcrossFirst => "pillow",
            Self::Pillow12 => "pillow12.2",
            Self::Pillow13 => "pillow13",
        }
    }

    /// Returns the order of a name.
    pub fn from_name(name: &str) -> Option<PassOrder> {
        let orders = [Self::AcrossFirst, Self::Pillow12, Self::Pillow13];
        orders.into_iter().find(|order| order.name() == name)
    }

    /// Returns true if columns are scaled before rows; `height` and `width` are each (from, to).
    pub(in crate::image) fn down_first(
        self,
        height: (usize, usize),
        width: (usize, usize),
    ) -> bool {
        if height.1 >= height.0 {
            return false;
        }
        match self {
            Self::AcrossFirst => false,
            Self::Pillow12 => height.0 > 100 * width.0,
            // height.0 - height.1 > 2 * (width.0 - width.1), without negative numbers
            Self::Pillow13 => height.0 + 2 * width.1 > height.1 + 2 * width.0,
        }
    }
}
