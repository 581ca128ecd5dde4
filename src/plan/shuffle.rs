//! Random orders that depend only on seed and epoch.

use crate::draws::{Draws, Key};

/// The leaf number in the keys of plans; no leaf of a sample has it.
const LEAF: u64 = u64::MAX;

/// The shuffling of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// The sampler's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
}

/// The subject of a shuffle. Changing a number would change every plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Samples, before their neighbourhoods are sorted.
    Samples = 0,
    /// The steps of an epoch.
    Steps = 1,
    /// The batches of each step.
    Ranks = 2,
    /// Bins, before they are divided into batches.
    Bins = 3,
}

impl Shuffle {
    pub(super) fn draws(self, purpose: Purpose) -> Draws {
        let key = Key {
            seed: self.seed,
            epoch: self.epoch,
            leaf: LEAF,
            ..Key::default()
        };
        Draws::new(key, purpose as u32)
    }
}

/// Returns the samples `0..count` in the order of `shuffle`, or ascending without one.
pub(super) fn samples(count: u32, shuffle: Option<Shuffle>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    if let Some(shuffle) = shuffle {
        shuffle.draws(Purpose::Samples).shuffle(&mut order);
    }
    order
}
