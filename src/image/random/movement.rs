//! `RandomHorizontalFlip`, `RandomVerticalFlip`, `RandomRotation` and `RandomAffine`.

use crate::image::{Action, Draws, Movement, Plan, Rotation};

/// Mirrors an image with probability `p`.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomFlip {
    /// Probability, between 0 and 1.
    pub p: f64,
    /// True to mirror top and bottom rather than left and right.
    pub vertical: bool,
}

impl RandomFlip {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        if draws.happens(self.p) {
            plan.push(if self.vertical {
                Action::FlipVertical
            } else {
                Action::FlipHorizontal
            });
        }
    }
}

/// Rotates images by a random angle.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomRotation {
    /// Range of the counter-clockwise angle, in degrees.
    pub degrees: (f64, f64),
    /// All parameters but the angle.
    pub rotation: Rotation,
}

impl RandomRotation {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let rotation = Rotation {
            angle: draws.uniform(self.degrees.0, self.degrees.1),
            ..self.rotation.clone()
        };
        rotation.plan(plan);
    }

    /// Returns (height, width) of every result, if it does not depend on the angle.
    pub(crate) fn fixed_size(&self, before: Option<(usize, usize)>) -> Option<(usize, usize)> {
        before.filter(|_| !self.rotation.expand)
    }
}

/// Rotates, translates, scales and shears images within their size. Ranges are (least, most).
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAffine {
    /// Range of the clockwise angle, in degrees.
    pub degrees: (f64, f64),
    /// Maximum translation to either side, as a share of the image's width and height.
    pub translate: Option<(f64, f64)>,
    /// Range of the scale factor.
    pub scale: Option<(f64, f64)>,
    /// Ranges of the shear along x, then along y, in degrees.
    pub shear: Option<[(f64, f64); 2]>,
    /// All parameters that are not drawn.
    pub movement: Movement,
}

impl RandomAffine {
    /// Draws the parameters: torchvision's `RandomAffine.get_params`.
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let shape = plan.shape();
        let mut movement = self.movement.clone();
        movement.angle = draws.uniform(self.degrees.0, self.degrees.1);
        if let Some((across, down)) = self.translate {
            let mut whole = |part: f64, side: usize| {
                let most = part * side as f64;
                draws.uniform(-most, most).round_ties_even()
            };
            movement.translate = (whole(across, shape.width), whole(down, shape.height));
        }
        if let Some((least, most)) = self.scale {
            movement.scale = draws.uniform(least, most);
        }
        if let Some([x, y]) = self.shear {
            movement.shear = (draws.uniform(x.0, x.1), draws.uniform(y.0, y.1));
        }
        plan.push(Action::Affine(movement.of(shape)));
    }
}
