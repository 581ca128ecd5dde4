//! `RandomAffine`.

use crate::image::{Action, Draws, Movement, Plan};

/// Turns, moves, scales and shears images within their size. Ranges are (least, most).
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAffine {
    /// Of the angle, clockwise.
    pub degrees: (f64, f64),
    /// The furthest move to either side, by the image's width and height.
    pub translate: Option<(f64, f64)>,
    /// Of how much larger the image becomes.
    pub scale: Option<(f64, f64)>,
    /// Of the shear along x, then along y, in degrees.
    pub shear: Option<[(f64, f64); 2]>,
    /// All that is not drawn.
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
