//! `RandomGrayscale`.

use crate::image::{Action, Draws, Luma, Plan};

/// Converts some images to grey; they keep their channels.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomGrayscale {
    /// Probability, between 0 and 1.
    pub p: f64,
    /// The weights of colours.
    pub luma: Luma,
}

impl RandomGrayscale {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        if draws.happens(self.p) {
            let channels = plan.shape().channels;
            plan.push(Action::Grayscale {
                channels,
                luma: self.luma,
            });
        }
    }
}
