//! `RandomGrayscale`.

use crate::image::{Action, Draws, Luma, Plan};

/// Makes some images grey; they keep their channels.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomGrayscale {
    /// Between 0 and 1.
    pub p: f64,
    /// How colours are weighed.
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
