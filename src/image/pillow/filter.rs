//! The filters of `PIL.Image.Resampling`: their support and their weights.

use std::f64::consts::PI;

use crate::image::sinc::sinc;

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
    pub(super) fn support(self) -> f64 {
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
    pub(super) fn weight(self, x: f64) -> f64 {
        match self {
            Self::Box => f64::from(u8::from(-0.5 < x && x <= 0.5)),
            Self::Bilinear => (1.0 - x.abs()).max(0.0),
            Self::Hamming => hamming(x.abs()),
            Self::Bicubic => bicubic(x.abs()),
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

/// Convolution kernel of Keys (1981) with a = -0.5.
#[allow(clippy::suboptimal_flops)] // a fused multiply would round once where Pillow rounds twice
fn bicubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}
