//! `TrivialAugmentWide`: one augmentation of random magnitude.

use super::augmentation::{Augmentation, Augmenter};
use crate::image::{Draws, Plan};

/// Applies one augmentation; all augmentations and all magnitudes are equally likely.
#[derive(Clone, Debug, PartialEq)]
pub struct TrivialAugmentWide {
    /// The parameters with which it is applied.
    pub augmenter: Augmenter,
}

impl TrivialAugmentWide {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let what = draws.one_of(&Augmentation::CHOICE);
        let level = draws.below(self.augmenter.bins);
        self.augmenter.plan(what, level, draws, plan);
    }
}
