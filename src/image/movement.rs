//! torchvision's `affine` and `rotate`: translation, scaling, shear and rotation.
#![allow(clippy::many_single_char_names)] // a matrix, as in the documents of Pillow

use super::{Action, Affine, Interpolation, Plan, Shape, Turn};

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
    /// True for the matrix of `transforms.v2`, which is rounded otherwise.
    pub second: bool,
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
        second: false,
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
        let c = (turn - sy).sin() / sy.cos();
        let (b, d) = if self.second {
            (-(a * sx.tan() + turn.sin()), turn.cos() - c * sx.tan())
        } else {
            (
                -(turn - sy).cos() * sx.tan() / sy.cos() - turn.sin(),
                -(turn - sy).sin() * sx.tan() / sy.cos() + turn.cos(),
            )
        };

        let [a, b, c, d] = [d, -b, -c, a].map(|value| value / self.scale);
        let (x, y) = if self.second {
            let (x, y) = (cx + tx, cy + ty);
            (cx - a * x - b * y, cy - c * x - d * y)
        } else {
            (
                a * (-cx - tx) + b * (-cy - ty) + cx,
                c * (-cx - tx) + d * (-cy - ty) + cy,
            )
        };
        [a, b, x, c, d, y]
    }
}

/// The angle and the centre of a rotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    /// Counter-clockwise angle, in degrees.
    pub angle: f64,
    /// True to enlarge the result so that it contains all of the source.
    pub expand: bool,
    /// (x, y) of the fixed point; by default the centre of the image.
    pub center: Option<(f64, f64)>,
    /// The interpolation between source pixels.
    pub interpolation: Interpolation,
    /// The value of each channel for pixels outside of the source.
    pub fill: [u8; 3],
}

impl Rotation {
    /// Adds the rotation to `plan`.
    #[allow(clippy::float_cmp)] // only multiples of a quarter turn are exact
    pub fn plan(&self, plan: &mut Plan) {
        let angle = self.angle.rem_euclid(360.0);
        let square = plan.shape().width == plan.shape().height;
        if self.center.is_none() {
            if angle == 0.0 {
                return;
            }
            if angle == 180.0 {
                return plan.push(Action::Turn(Turn::Half));
            }
            if angle == 90.0 && (self.expand || square) {
                return plan.push(Action::Turn(Turn::Left));
            }
            if angle == 270.0 && (self.expand || square) {
                return plan.push(Action::Turn(Turn::Right));
            }
        }
        let affine = self.affine(angle, plan.shape().height, plan.shape().width);
        plan.push(Action::Affine(affine));
    }

    /// Returns the map for an image of `height` by `width` pixels, operation for operation as Pillow.
    #[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
    #[allow(clippy::cast_sign_loss)] // a largest less a smallest value
    fn affine(&self, angle: f64, height: usize, width: usize) -> Affine {
        let (mut size, sides) = ((height, width), (width as f64, height as f64));
        let (cx, cy) = self.center.unwrap_or((sides.0 / 2.0, sides.1 / 2.0));
        let angle = -angle.to_radians();
        let (cos, sin, minus_sin) = (
            to_15_places(angle.cos()),
            to_15_places(angle.sin()),
            to_15_places(-angle.sin()),
        );
        let mut origin = (0.0, 0.0);
        let at = |x: f64, y: f64, origin: (f64, f64)| {
            (
                cos * x + sin * y + origin.0,
                minus_sin * x + cos * y + origin.1,
            )
        };
        origin = at(-cx, -cy, origin);
        origin = (origin.0 + cx, origin.1 + cy);
        if self.expand {
            let corners = [(0.0, 0.0), (sides.0, 0.0), sides, (0.0, sides.1)];
            let corners = corners.map(|(x, y)| at(x, y, origin));
            let across = extent(corners.map(|(x, _)| x));
            let down = extent(corners.map(|(_, y)| y));
            origin = at(-(across - sides.0) / 2.0, -(down - sides.1) / 2.0, origin);
            size = (down as usize, across as usize);
        }
        Affine {
            matrix: [cos, sin, origin.0, minus_sin, cos, origin.1],
            size,
            interpolation: self.interpolation,
            fill: self.fill,
        }
    }
}

/// Returns how many whole pixels `positions` span.
fn extent(positions: [f64; 4]) -> f64 {
    let largest = positions.iter().copied().fold(f64::MIN, f64::max);
    let smallest = positions.iter().copied().fold(f64::MAX, f64::min);
    largest.ceil() - smallest.floor()
}

/// Rounds as Python's `round(value, 15)`: through the nearest decimal.
fn to_15_places(value: f64) -> f64 {
    format!("{value:.15}").parse().unwrap_or(value)
}
