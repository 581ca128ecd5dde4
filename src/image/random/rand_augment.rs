//! `RandAugment`: several augmentations of one magnitude.

use super::augmentation::{Augmentation, Augmenter};
use crate::image::{Draws, Plan};

/// Applies augmentations, each equally likely.
#[derive(Clone, Debug, PartialEq)]
pub struct RandAugment {
    /// Number of augmentations.
    pub count: u32,
    /// Their magnitude, below the augmenter's bins.
    pub level: u32,
    /// The parameters with which they are applied.
    pub augmenter: Augmenter,
}

impl RandAugment {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        for _ in 0..self.count {
            let what = draws.one_of(&Augmentation::CHOICE);
            self.augmenter.plan(what, self.level, draws, plan);
        }
    }
}
