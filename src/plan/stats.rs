//! What a plan comes to.

/// Numbers of one epoch, over all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Steps; every rank has a batch in each.
    pub steps: usize,
    /// Batches of all ranks.
    pub batches: usize,
    /// Samples that are in a batch; each counts once.
    pub samples: usize,
    /// Samples that are in none.
    pub dropped: usize,
    /// Samples that are in a second batch.
    pub repeated: usize,
    /// Samples that fill the batch of a rank that has none.
    pub fillers: usize,
    /// Most samples of a batch.
    pub samples_max: usize,
    /// Which part of all tokens are neither of a sample nor its first occurrence, 0..=1.
    pub waste: f64,
    /// Tokens that half of the batches do not exceed.
    pub tokens_p50: u64,
    /// Tokens that 99 of 100 batches do not exceed.
    pub tokens_p99: u64,
    /// Most tokens of a batch.
    pub tokens_max: u64,
}

impl Stats {
    /// Sums up the tokens of all batches, of which `useful` belong to samples.
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
