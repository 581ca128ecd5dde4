//! `RandomRotation`.

use crate::image::{Draws, Plan, Rotation};

/// Turns images.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomRotation {
    /// Least and most degrees, counter-clockwise.
    pub degrees: (f64, f64),
    /// All but the angle.
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

    /// Returns (height, width) of every result, if the angle does not decide it.
    pub(crate) fn fixed_size(&self, before: Option<(usize, usize)>) -> Option<(usize, usize)> {
        before.filter(|_| !self.rotation.expand)
    }
}
