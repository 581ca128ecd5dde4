//! Translation, scaling and shear within the image's size: torchvision's `affine`.
#![allow(clippy::many_single_char_names)] // a matrix, as in the documents of Pillow

use super::{Affine, Interpolation, Shape};

/// Parameters of torchvision's `affine`.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// Clockwise angle, in degrees.
    pub angle: f64,
    /// Translation to the right and down in pixels, applied last.
    pub translate: (f64, f64),
    /// Scale factor; above 0.
    pub scale: f64,
    /// Shear along x and y, in degrees.
    pub shear: (f64, f64),
    /// (x, y) of the fixed point before translation; by default the centre of the image.
    pub center: Option<(f64, f64)>,
    /// The interpolation between source pixels.
    pub interpolation: Interpolation,
    /// The value of each channel for pixels outside of the source.
    pub fill: [u8; 3],
}

impl Movement {
    /// The identity; missing pixels would be black.
    pub const NONE: Self = Self {
        angle: 0.0,
        translate: (0.0, 0.0),
        scale: 1.0,
        shear: (0.0, 0.0),
        center: None,
        interpolation: Interpolation::Nearest,
        fill: [0; 3],
    };

    /// Shears by slopes along x and y around the corner of the first pixel, as `AutoAugment`'s `ShearX` and
    /// `ShearY` do.
    #[must_use]
    pub fn sloping(x: f64, y: f64) -> Self {
        Self {
            shear: (x.atan().to_degrees(), y.atan().to_degrees()),
            center: Some((0.0, 0.0)),
            ..Self::NONE
        }
    }

    /// Returns the affine map for an image of `shape`, whose size stays.
    pub fn of(&self, shape: Shape) -> Affine {
        Affine {
            matrix: self.matrix(shape),
            size: (shape.height, shape.width),
            interpolation: self.interpolation,
            fill: self.fill,
        }
    }

    /// Returns the map from result to source: torchvision's `_get_inverse_affine_matrix`, operation for
    /// operation. Both use the C library's sines.
    #[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
    fn matrix(&self, shape: Shape) -> [f64; 6] {
        let middle = (shape.width as f64 * 0.5, shape.height as f64 * 0.5);
        let (cx, cy) = self.center.unwrap_or(middle);
        let (tx, ty) = self.translate;
        let turn = self.angle.to_radians();
        let (sx, sy) = (self.shear.0.to_radians(), self.shear.1.to_radians());

        let a = (turn - sy).cos() / sy.cos();
        let b = -(turn - sy).cos() * sx.tan() / sy.cos() - turn.sin();
        let c = (turn - sy).sin() / sy.cos();
        let d = -(turn - sy).sin() * sx.tan() / sy.cos() + turn.cos();

        let [a, b, c, d] = [d, -b, -c, a].map(|value| value / self.scale);
        let x = a * (-cx - tx) + b * (-cy - ty) + cx;
        let y = c * (-cx - tx) + d * (-cy - ty) + cy;
        [a, b, x, c, d, y]
    }
}
