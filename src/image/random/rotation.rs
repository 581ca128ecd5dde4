//! `RandomRotation`.

use crate::image::{Draws, Plan, Rotation};

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
