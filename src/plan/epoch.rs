//! The planned batches of one epoch, and their statistics.

use super::Lengths;
use super::bins::{self, Strategy};
use super::shards::{Dealt, Origin, Share};

/// The rule by which the tokens of a batch are counted.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// Samples times the longest.
    Padded,
    /// The sum of all lengths.
    Sum,
    /// Bins times their size.
    Bins(Strategy, std::num::NonZeroU32),
}

/// A plan: which samples form the batch of which rank at which step.
#[derive(Debug)]
pub struct Epoch {
    lengths: Lengths,
    order: Vec<u32>,
    shares: Vec<Share>,
    world: usize,
    measure: Measure,
}

impl Epoch {
    pub(super) fn new(lengths: Lengths, order: Vec<u32>, dealt: Dealt, measure: Measure) -> Epoch {
        Epoch {
            lengths,
            order,
            shares: dealt.shares,
            world: dealt.world,
            measure,
        }
    }

    /// Returns the number of steps; every rank has one batch in each.
    pub fn steps(&self) -> usize {
        self.shares.len() / self.world
    }

    /// Returns the samples of a rank's batch and whether they are fillers; None if there is no such step or
    /// rank.
    pub fn batch(&self, step: usize, rank: usize) -> Option<(&[u32], bool)> {
        let place = step.checked_mul(self.world)?.checked_add(rank)?;
        let share = self.shares.get(place).filter(|_| rank < self.world)?;
        Some((self.samples(*share), share.origin == Origin::Filler))
    }

    /// Returns the statistics of the plan, over all ranks.
    pub fn stats(&self) -> Stats {
        let mut tokens: Vec<u64> = Vec::with_capacity(self.shares.len());
        let mut stats = Stats {
            steps: self.steps(),
            batches: self.shares.len(),
            ..Stats::default()
        };
        let mut useful = 0;
        for &share in &self.shares {
            let samples = self.samples(share);
            tokens.push(self.tokens(samples));
            stats.samples_max = stats.samples_max.max(samples.len());
            match share.origin {
                Origin::Own => {
                    stats.samples += samples.len();
                    useful += self.sum(samples);
                }
                Origin::Repeat => stats.repeated += samples.len(),
                Origin::Filler => stats.fillers += samples.len(),
            }
        }
        stats.dropped = self.lengths.len() as usize - stats.samples;
        stats.count(tokens, useful);
        stats
    }

    fn samples(&self, share: Share) -> &[u32] {
        &self.order[share.range()]
    }

    fn sum(&self, samples: &[u32]) -> u64 {
        samples
            .iter()
            .map(|&sample| u64::from(self.lengths.at(sample)))
            .sum()
    }

    fn tokens(&self, samples: &[u32]) -> u64 {
        let lengths = samples.iter().map(|&sample| self.lengths.at(sample));
        match self.measure {
            Measure::Padded => samples.len() as u64 * u64::from(lengths.max().unwrap_or(0)),
            Measure::Sum => self.sum(samples),
            Measure::Bins(strategy, room) => {
                let lengths: Vec<u32> = lengths.collect();
                bins::count(&lengths, room, strategy) * u64::from(room.get())
            }
        }
    }
}

/// Statistics of one epoch, over all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Steps; every rank has a batch in each.
    pub steps: usize,
    /// Batches of all ranks.
    pub batches: usize,
    /// Samples that are in a batch; each counts once.
    pub samples: usize,
    /// Samples in no batch.
    pub dropped: usize,
    /// Samples in a second batch.
    pub repeated: usize,
    /// Samples that only fill the batch of a rank that has none.
    pub fillers: usize,
    /// Samples of the largest batch.
    pub samples_max: usize,
    /// Share of all tokens that is padding or repeated samples, 0..=1.
    pub waste: f64,
    /// Median of the tokens of a batch.
    pub tokens_p50: u64,
    /// 99th percentile of the tokens of a batch.
    pub tokens_p99: u64,
    /// Maximum of the tokens of a batch.
    pub tokens_max: u64,
}

impl Stats {
    /// Computes the statistics of all batches' tokens, of which `useful` belong to samples.
    fn count(&mut self, mut tokens: Vec<u64>, useful: u64) {
        tokens.sort_unstable();
        let at = |hundredths: usize| {
            let place = (tokens.len() * hundredths).div_ceil(100).saturating_sub(1);
            tokens.get(place).copied().unwrap_or(0)
        };
        (self.tokens_p50, self.tokens_p99, self.tokens_max) = (at(50), at(99), at(100));
        let all: u64 = tokens.iter().sum();
        if all > 0 {
            self.waste = 1.0 - useful as f64 / all as f64;
        }
    }
}
