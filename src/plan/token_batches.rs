//! Plans batches of samples of similar length, within a token budget.

use super::shuffle::samples;
use super::{Budget, Cost, Epoch, Lengths, Long, Measure, Ranks, Shuffle, neighbours};

/// The settings of token batches.
#[derive(Clone, Copy, Debug)]
pub struct TokenBatches {
    /// The limits of a batch.
    pub budget: Budget,
    /// Number of samples per rank that are sorted together.
    pub window: usize,
    /// Length of the longest sample that fits a batch.
    pub limit: u32,
    /// The treatment of longer samples.
    pub long: Long,
    /// True if a last step that is not full is dropped.
    pub drop_last: bool,
    /// True if the step with the longest sample comes first.
    pub longest_first: bool,
}

impl TokenBatches {
    /// Plans an epoch; without `shuffle`, windows of the dataset's own order are sorted.
    ///
    /// O(n log(window)).
    pub fn plan(&self, lengths: &Lengths, shuffle: Option<Shuffle>, ranks: Ranks) -> Epoch {
        let lengths = match self.long {
            Long::Truncate => lengths.up_to(self.limit),
            Long::Keep | Long::Drop => lengths.clone(),
        };
        let mut order = samples(lengths.len(), shuffle);
        if self.long == Long::Drop {
            order.retain(|&sample| lengths.at(sample) <= self.limit);
        }
        neighbours::gather(
            &mut order,
            &lengths,
            self.window.saturating_mul(ranks.world),
        );
        let cuts = self.budget.cut(&order, &lengths);
        let multiple = self.budget.multiple;
        let mut dealt = ranks.deal(&cuts.ends, cuts.last_is_full, self.drop_last, multiple);
        if let Some(shuffle) = shuffle {
            dealt.shuffle(shuffle);
        }
        if self.longest_first {
            dealt.lead(|share| {
                let batch = &order[share.range()];
                let longest = batch.iter().map(|&sample| lengths.at(sample)).max();
                (longest, batch.len())
            });
        }
        let measure = match self.budget.cost {
            Cost::Sum => Measure::Sum,
            Cost::Padded | Cost::Quadratic(_) => Measure::Padded,
        };
        Epoch::new(lengths, order, dealt, ranks.world, measure)
    }
}

#[cfg(test)]
mod tests;
