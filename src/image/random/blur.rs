//! `GaussianBlur`: blurs of a strength that is drawn.

use crate::image::{Action, Draws, GaussianBlur, Plan};

/// Blurs images. Strengths are as many as there are weights of torch's making, evenly spaced.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomBlur {
    /// Each as likely as another; at least one.
    pub blurs: Vec<GaussianBlur>,
}

impl RandomBlur {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let drawn = draws.below(self.blurs.len() as u32) as usize;
        plan.push(Action::GaussianBlur(self.blurs[drawn].clone()));
    }
}
