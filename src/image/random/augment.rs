//! `AutoAugment`, `RandAugment` and `TrivialAugmentWide`: augmentations that are chosen for each image.

use super::augmentation::{Augmentation, Augmenter};
use super::policy::Policy;
use crate::image::{Draws, Plan};

/// Applies augmentations that are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Augment {
    /// The way in which they are drawn.
    pub choice: Choice,
    /// The parameters with which they are applied.
    pub augmenter: Augmenter,
}

/// The way in which augmentations are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `AutoAugment`: a pair of the policy, all equally likely. Each of the two has its own probability, and
    /// its magnitude, of ten levels.
    Pair(Policy),
    /// `RandAugment`: augmentations that are equally likely, all of one magnitude.
    Several {
        /// Number of augmentations.
        count: u32,
        /// Their magnitude, below the augmenter's bins.
        level: u32,
    },
    /// `TrivialAugmentWide`: one augmentation; all augmentations and all magnitudes are equally likely.
    One,
}

impl Augment {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let augmenter = &self.augmenter;
        match self.choice {
            Choice::Pair(policy) => {
                for step in draws.one_of(policy.pairs()) {
                    if draws.happens(f64::from(step.tenths) / 10.0) {
                        augmenter.plan(step.what, step.level, draws, plan);
                    }
                }
            }
            Choice::Several { count, level } => {
                for _ in 0..count {
                    let what = draws.one_of(&Augmentation::CHOICE);
                    augmenter.plan(what, level, draws, plan);
                }
            }
            Choice::One => {
                let what = draws.one_of(&Augmentation::CHOICE);
                let level = draws.below(augmenter.bins);
                augmenter.plan(what, level, draws, plan);
            }
        }
    }
}
