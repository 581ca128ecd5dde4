//! `RandAugment`: some augmentations of one strength.

use super::augmentation::{Augmentation, Augmenter};
use crate::image::{Draws, Plan};

/// Carries out augmentations, each as likely as another.
#[derive(Clone, Debug, PartialEq)]
pub struct RandAugment {
    /// How many, one after the other.
    pub count: u32,
    /// How strong, below the augmenter's bins.
    pub level: u32,
    /// How they are carried out.
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
