//! Statistics of a plan.

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
    pub(super) fn count(&mut self, mut tokens: Vec<u64>, useful: u64) {
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
