//! `TrivialAugmentWide`: one augmentation of any strength.

use super::augmentation::{Augmentation, Augmenter};
use crate::image::{Draws, Plan};

/// Carries out one augmentation, as likely as another, of a strength as likely as another.
#[derive(Clone, Debug, PartialEq)]
pub struct TrivialAugmentWide {
    /// How it is carried out.
    pub augmenter: Augmenter,
}

impl TrivialAugmentWide {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let what = draws.one_of(&Augmentation::CHOICE);
        let level = draws.below(self.augmenter.bins);
        self.augmenter.plan(what, level, draws, plan);
    }
}
