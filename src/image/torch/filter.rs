//! The weights of torch's interpolations, by distance.

use super::Interpolation;
use crate::image::sinc::sinc;

impl Interpolation {
    /// Returns the number of source pixels per output when the image does not shrink.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Nearest | Self::NearestExact => 1,
            Self::Bilinear | Self::AliasedBilinear => 2,
            Self::Bicubic | Self::AliasedBicubic => 4,
            Self::Lanczos => 6,
        }
    }

    /// Returns true if more pixels are weighted when the image shrinks.
    pub(super) fn antialiases(self) -> bool {
        matches!(self, Self::Bilinear | Self::Bicubic | Self::Lanczos)
    }

    /// Returns the weight at distance `x`: `aa_filter` of `UpSampleKernel.cpp`.
    pub(super) fn weight(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Self::Nearest | Self::NearestExact => 1.0,
            Self::Bilinear | Self::AliasedBilinear => (1.0 - x).max(0.0),
            Self::Bicubic => cubic(x, -0.5),
            Self::AliasedBicubic => cubic(x, -0.75),
            Self::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Lanczos => 0.0,
        }
    }
}

/// Convolution kernel of Keys (1981).
#[allow(clippy::suboptimal_flops)] // a fused multiply would round once where torch rounds twice
fn cubic(x: f64, a: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
