//! `ColorJitter`: colour changes in random order.

use crate::image::{Action, Draws, Plan};

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
