//! Scaling as torch scales byte tensors on the CPU: weights of 16 bits whose precision depends on the largest
//! one, rows first, and 8 bits between the passes.
//!
//! Owns the modes of `torch.nn.functional.interpolate` that images are scaled with, and its arithmetic for uint8
//! (`UpSampleKernel.cpp`). Refuses modes that use floating point there: their results depend on the order of sums,
//! and so on the compiler.

mod taps;

use super::nearest::{self, Positions};
use super::weights::{cubic, sinc};
pub(super) use taps::Taps;

/// The interpolation that weights the pixels of a tensor when it is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The pixel at the output's upper left corner.
    Nearest,
    /// The pixel at the output's centre.
    NearestExact,
    /// Triangles, stretched when the image shrinks.
    Bilinear,
    /// Cubics, stretched when the image shrinks.
    Bicubic,
    /// Windowed sincs, stretched when the image shrinks.
    Lanczos,
    /// Triangles over two pixels, however much the image shrinks.
    AliasedBilinear,
    /// Cubics over four pixels, however much the image shrinks.
    AliasedBicubic,
}

impl Interpolation {
    /// Returns the mode that torchvision's `InterpolationMode` calls `name`.
    pub fn from_name(name: &str, antialias: bool) -> Option<Self> {
        Some(match (name, antialias) {
            ("nearest", _) => Self::Nearest,
            ("nearest-exact", _) => Self::NearestExact,
            ("bilinear", true) => Self::Bilinear,
            ("bilinear", false) => Self::AliasedBilinear,
            ("bicubic", true) => Self::Bicubic,
            ("bicubic", false) => Self::AliasedBicubic,
            ("lanczos", true) => Self::Lanczos,
            _ => return None,
        })
    }

    /// Returns the name of the library variant, with or without antialiasing, and the mode's name there.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Nearest => ("torch", "nearest"),
            Self::NearestExact => ("torch", "nearest-exact"),
            Self::Bilinear => ("torch", "bilinear"),
            Self::Bicubic => ("torch", "bicubic"),
            Self::Lanczos => ("torch", "lanczos"),
            Self::AliasedBilinear => ("torch_aliased", "bilinear"),
            Self::AliasedBicubic => ("torch_aliased", "bicubic"),
        }
    }

    /// Returns the function for the source positions of a result of `to` (rows, columns), if each of its
    /// pixels is one of the source.
    pub(in crate::image) fn positions(self, to: (usize, usize)) -> Option<Positions> {
        match self {
            Self::Nearest => Some(nearest::torch_corners),
            // torch computes small results with another routine.
            Self::NearestExact if to.0 + to.1 <= 128 => Some(nearest::torch_small_centers),
            Self::NearestExact => Some(nearest::torch_centers),
            _ => None,
        }
    }

    /// Returns the number of source pixels per output when the image does not shrink.
    fn size(self) -> usize {
        match self {
            Self::Nearest | Self::NearestExact => 1,
            Self::Bilinear | Self::AliasedBilinear => 2,
            Self::Bicubic | Self::AliasedBicubic => 4,
            Self::Lanczos => 6,
        }
    }

    /// Returns true if more pixels are weighted when the image shrinks.
    fn antialiases(self) -> bool {
        matches!(self, Self::Bilinear | Self::Bicubic | Self::Lanczos)
    }

    /// Returns the weight at distance `x`: `aa_filter` of `UpSampleKernel.cpp`.
    fn weight(self, x: f64) -> f64 {
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
