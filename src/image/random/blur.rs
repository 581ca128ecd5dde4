//! `GaussianBlur`: blurs of random strength.

use crate::image::{Action, Draws, GaussianBlur, Plan};

/// Blurs images. torch computes the weights, so there is a fixed number of evenly spaced strengths.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomBlur {
    /// The blurs, equally likely; at least one.
    pub blurs: Vec<GaussianBlur>,
}

impl RandomBlur {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let drawn = draws.below(self.blurs.len() as u32) as usize;
        plan.push(Action::GaussianBlur(self.blurs[drawn].clone()));
    }
}
