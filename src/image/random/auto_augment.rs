//! `AutoAugment`: pairs of augmentations that were learned on a dataset.

use super::augmentation::Augmenter;
use super::policy::Policy;
use crate::image::{Draws, Plan};

/// Applies one pair of a policy, each of the two with its own probability.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoAugment {
    /// The pairs, equally likely.
    pub policy: Policy,
    /// The parameters with which they are applied; ten levels.
    pub augmenter: Augmenter,
}

impl AutoAugment {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        for step in draws.one_of(self.policy.pairs()) {
            if draws.happens(f64::from(step.tenths) / 10.0) {
                self.augmenter.plan(step.what, step.level, draws, plan);
            }
        }
    }
}
