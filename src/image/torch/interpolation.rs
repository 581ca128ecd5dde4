//! The modes of `torch.nn.functional.interpolate` that images are scaled with.

use super::nearest;
use crate::image::nearest::Positions;

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
            Self::Nearest => Some(nearest::corners),
            // torch computes small results with another routine.
            Self::NearestExact if to.0 + to.1 <= 128 => Some(nearest::small_centers),
            Self::NearestExact => Some(nearest::centers),
            _ => None,
        }
    }
}
