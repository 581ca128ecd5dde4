//! `RandomHorizontalFlip` and `RandomVerticalFlip`.

use crate::image::{Action, Draws, Plan};

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
