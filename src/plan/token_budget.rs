//! The limits of one batch.

use super::Lengths;

/// The rule by which the tokens of a batch are counted. A sample of length 0 counts as one of length 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Samples times the longest: the size after padding.
    Padded,
    /// The sum of all lengths.
    Sum,
    /// As padded, with `L + L² / q` in place of a length L: attention costs more for long samples.
    Quadratic(u32),
}

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum of tokens; None for no limit.
    pub tokens: Option<u64>,
    /// The rule by which they are counted.
    pub cost: Cost,
    /// Maximum of samples, a multiple of `multiple`.
    pub samples: usize,
    /// Batches have a multiple of this many samples (at least 1) if the token limit allows so many.
    pub multiple: usize,
}

/// The division of a sequence of samples into batches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cuts {
    /// The end of each batch.
    pub(super) ends: Vec<usize>,
    /// True if the last batch is as full as the budget allows, so that no samples are missing from it.
    pub(super) last_is_full: bool,
}

/// The contents of a batch.
#[derive(Clone, Copy, Default)]
struct Load {
    samples: u64,
    longest: u64,
    sum: u64,
}

impl Load {
    fn with(self, count: u64, length: u32) -> Load {
        let length = u64::from(length.max(1));
        Load {
            samples: self.samples + count,
            longest: self.longest.max(length),
            sum: self.sum + count * length,
        }
    }
}

impl Budget {
    /// Returns true if a batch is within the limits.
    fn holds(&self, load: Load) -> bool {
        load.samples <= self.samples as u64
            && self.tokens.is_none_or(|tokens| self.pays(load, tokens))
    }

    fn pays(&self, load: Load, tokens: u64) -> bool {
        let [samples, longest, sum] = [load.samples, load.longest, load.sum].map(u128::from);
        let tokens = u128::from(tokens);
        match self.cost {
            Cost::Padded => samples * longest <= tokens,
            Cost::Sum => sum <= tokens,
            Cost::Quadratic(q) => {
                let q = u128::from(q);
                samples * longest * (q + longest) <= tokens * q
            }
        }
    }

    /// Divides a sequence of samples into batches, each as long as the budget allows.
    ///
    /// A sample that exceeds the budget by itself forms a batch of its own.
    pub(super) fn cut(&self, order: &[u32], lengths: &Lengths) -> Cuts {
        let mut ends = Vec::new();
        let (mut start, mut at, mut load) = (0, 0, Load::default());
        while start < order.len() {
            let next = order.get(at);
            match next.map(|&sample| load.with(1, lengths.at(sample))) {
                Some(more) if at == start || self.holds(more) => {
                    load = more;
                    at += 1;
                }
                _ => {
                    start = self.rounded(start, at);
                    ends.push(start);
                    (at, load) = (start, Load::default());
                }
            }
        }
        let last = ends.iter().rev().nth(1).copied().unwrap_or(0)..order.len();
        Cuts {
            last_is_full: self.is_full(&order[last], lengths),
            ends,
        }
    }

    /// Returns the end of a batch of the samples `start..end`, rounded down to a multiple.
    fn rounded(&self, start: usize, end: usize) -> usize {
        let (samples, extra) = (end - start, (end - start) % self.multiple);
        if extra < samples { end - extra } else { end }
    }

    /// Returns true if no further sample fits the batch, not even of its shortest length.
    fn is_full(&self, batch: &[u32], lengths: &Lengths) -> bool {
        let all = batch.iter().map(|&sample| lengths.at(sample));
        let load = all
            .clone()
            .fold(Load::default(), |load, length| load.with(1, length));
        let multiple = self.multiple as u64;
        let more = load.with(multiple, all.min().unwrap_or(0));
        load.samples.is_multiple_of(multiple) && !self.holds(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(budget: Budget, lengths: &[u32]) -> (Vec<usize>, bool) {
        let order: Vec<u32> = (0..lengths.len() as u32).collect();
        let cuts = budget.cut(&order, &Lengths::of(lengths.to_vec()).unwrap());
        (cuts.ends, cuts.last_is_full)
    }

    fn budget(tokens: u64, cost: Cost) -> Budget {
        Budget {
            tokens: Some(tokens),
            cost,
            samples: usize::MAX,
            multiple: 1,
        }
    }

    #[test]
    fn batches_are_as_long_as_their_tokens_allow() {
        let lengths = [2, 2, 3, 4, 4, 1];
        assert_eq!(
            cut(budget(9, Cost::Padded), &lengths),
            (vec![3, 5, 6], false)
        );
        assert_eq!(cut(budget(9, Cost::Sum), &lengths), (vec![3, 6], true));
        // 2 + 4/2 = 4, 3 + 9/2 = 7.5, 4 + 16/2 = 12, 1 + 1/2 = 1.5
        let quadratic = budget(24, Cost::Quadratic(2));
        assert_eq!(cut(quadratic, &lengths), (vec![3, 5, 6], false));
    }

    #[test]
    fn a_sample_over_the_budget_is_alone() {
        let padded = budget(8, Cost::Padded);
        assert_eq!(cut(padded, &[1, 9, 1, 1]), (vec![1, 2, 4], false));
        assert_eq!(cut(padded, &[9]), (vec![1], true));
    }

    #[test]
    fn empty_samples_are_not_free() {
        assert_eq!(
            cut(budget(2, Cost::Padded), &[0; 5]),
            (vec![2, 4, 5], false)
        );
    }

    #[test]
    fn sizes_are_multiples_where_the_budget_holds_one() {
        let four = Budget {
            multiple: 4,
            ..budget(10, Cost::Padded)
        };
        assert_eq!(cut(four, &[1; 13]), (vec![8, 12, 13], false));
        assert_eq!(cut(four, &[4, 4, 4, 4]), (vec![2, 4], false));
        assert_eq!(cut(four, &[1; 8]), (vec![8], true));
    }

    #[test]
    fn no_samples_make_no_batches() {
        assert_eq!(cut(budget(8, Cost::Padded), &[]).0, Vec::<usize>::new());
    }
}
