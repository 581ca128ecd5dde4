//! `ColorJitter`, `RandomGrayscale` and `GaussianBlur`.

use crate::image::{Action, Draws, GaussianBlur, Luma, Plan};

/// Changes colours. Each range is (least, most); None leaves a property unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct ColorJitter {
    /// Range of the brightness factor.
    pub brightness: Option<(f64, f64)>,
    /// Range of the contrast factor.
    pub contrast: Option<(f64, f64)>,
    /// Range of the saturation factor.
    pub saturation: Option<(f64, f64)>,
    /// Range of the hue rotation, within -0.5 and 0.5.
    pub hue: Option<(f64, f64)>,
}

impl ColorJitter {
    /// Draws the factors and their order: torchvision's `ColorJitter.get_params`.
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let mut factor = |range: Option<(f64, f64)>, action: fn(f64) -> Action| {
            range.map(|(least, most)| action(draws.uniform(least, most)))
        };
        let mut actions = [
            factor(self.brightness, Action::Brightness),
            factor(self.contrast, Action::Contrast),
            factor(self.saturation, Action::Saturation),
            factor(self.hue, Action::Hue),
        ];
        draws.shuffle(&mut actions);
        actions
            .into_iter()
            .flatten()
            .for_each(|action| plan.push(action));
    }
}

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
