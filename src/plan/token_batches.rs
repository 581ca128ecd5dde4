//! Plans batches of samples of similar length, within a token budget.

use super::shuffle::samples;
use super::{Budget, Cost, Epoch, Lengths, Long, Measure, Ranks, Shuffle};

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
        gather(
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
        Epoch::new(lengths, order, dealt, measure)
    }
}

/// Sorts each window of `window` samples by length, alternately ascending and descending.
///
/// Lengths then never jump, not even between windows: wherever the order is cut into batches, and batches
/// into steps, neighbours have similar lengths. Equal lengths keep their order in ascending windows.
fn gather(order: &mut [u32], lengths: &Lengths, window: usize) {
    let mut sorted: Vec<u64> = Vec::new();
    let mut unsorted: Vec<u32> = Vec::new();
    for (turn, part) in order.chunks_mut(window.max(1)).enumerate() {
        unsorted.clear();
        unsorted.extend_from_slice(part);
        sorted.clear();
        let keys = unsorted.iter().zip(0_u64..);
        sorted.extend(keys.map(|(&sample, place)| u64::from(lengths.at(sample)) << 32 | place));
        sorted.sort_unstable();
        if turn % 2 == 1 {
            sorted.reverse();
        }
        for (to, &key) in part.iter_mut().zip(&sorted) {
            *to = unsorted[key as u32 as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Remainder;

    fn settings(tokens: u64) -> TokenBatches {
        TokenBatches {
            budget: Budget {
                tokens: Some(tokens),
                cost: Cost::Padded,
                samples: usize::MAX,
                multiple: 1,
            },
            window: 16,
            limit: u32::try_from(tokens).unwrap(),
            long: Long::Keep,
            drop_last: false,
            longest_first: false,
        }
    }

    fn steps(epoch: &Epoch, world: usize) -> Vec<Vec<(Vec<u32>, bool)>> {
        let batch = |step, rank| {
            let (samples, fillers) = epoch.batch(step, rank).unwrap();
            (samples.to_vec(), fillers)
        };
        let step = |step| (0..world).map(|rank| batch(step, rank)).collect();
        (0..epoch.steps()).map(step).collect()
    }

    fn any_remainder() -> impl Strategy<Value = Remainder> {
        prop_oneof![
            Just(Remainder::Drop),
            Just(Remainder::Repeat),
            Just(Remainder::Mask)
        ]
    }

    proptest! {
        #[test]
        fn a_plan_is_a_partition_within_the_budget(
            lengths in prop::collection::vec(0_u32..=50, 0..200),
            world in 1_usize..9,
            seed: Option<u64>,
            multiple in 1_usize..4,
            remainder in any_remainder(),
            longest_first: bool,
        ) {
            let mut settings = settings(50);
            settings.budget.multiple = multiple;
            settings.longest_first = longest_first;
            let shuffle = seed.map(|seed| Shuffle { seed, epoch: 3 });
            let all = Lengths::of(lengths.clone()).unwrap();
            let epoch = settings.plan(&all, shuffle, Ranks { world, remainder });
            let mut times = vec![0; lengths.len()];
            let mut fillers = 0;
            for (samples, filler) in steps(&epoch, world).concat() {
                prop_assert!(!samples.is_empty());
                let longest = samples.iter().map(|&sample| lengths[sample as usize]).max().unwrap();
                prop_assert!(samples.len() * longest.max(1) as usize <= 50);
                fillers += usize::from(filler);
                for sample in samples.iter().filter(|_| !filler) {
                    times[*sample as usize] += 1;
                }
            }
            let stats = epoch.stats();
            prop_assert_eq!(stats.fillers, fillers);
            prop_assert_eq!(stats.samples, times.iter().filter(|&&times| times > 0).count());
            prop_assert_eq!(stats.samples + stats.repeated, times.iter().sum::<usize>());
            match remainder {
                Remainder::Drop => {
                    prop_assert!(times.iter().all(|&times| times <= 1));
                    prop_assert!(stats.dropped < world);
                }
                Remainder::Repeat => prop_assert!(times.iter().all(|&times| times >= 1)),
                Remainder::Mask => prop_assert!(times.iter().all(|&times| times == 1)),
            }
        }
    }

    #[test]
    fn each_step_is_one_neighbourhood() {
        let lengths: Vec<u32> = (0..9000).map(|i| i * 7919 % 1000 + 1).collect();
        let all = Lengths::of(lengths.clone()).unwrap();
        let settings = TokenBatches {
            window: 123,
            ..settings(4000)
        };
        let ranks = Ranks {
            world: 4,
            remainder: Remainder::Drop,
        };
        let shuffle = Shuffle { seed: 1, epoch: 0 };
        let epoch = settings.plan(&all, Some(shuffle), ranks);
        let mut means = Vec::new();
        for step in steps(&epoch, 4) {
            let step = step.into_iter().flat_map(|(samples, _)| samples);
            let step: Vec<u32> = step.map(|sample| lengths[sample as usize]).collect();
            let (low, high) = (step.iter().min().unwrap(), step.iter().max().unwrap());
            assert!(high - low < 400, "{low}..={high} in one step");
            means.push(high - (high - low) / 2);
        }
        assert!(!means.is_sorted() && !means.iter().rev().is_sorted());
    }

    #[test]
    fn the_step_with_the_longest_sample_comes_first_on_demand() {
        let mut lengths = vec![3; 300];
        lengths[217] = 12;
        let all = Lengths::of(lengths).unwrap();
        let settings = TokenBatches {
            longest_first: true,
            ..settings(12)
        };
        let ranks = Ranks {
            world: 2,
            remainder: Remainder::Drop,
        };
        for seed in 0..20 {
            let epoch = settings.plan(&all, Some(Shuffle { seed, epoch: 0 }), ranks);
            let first = &steps(&epoch, 2)[0];
            assert!(first.iter().any(|(samples, _)| samples.contains(&217)));
        }
    }

    #[test]
    fn a_last_step_that_is_not_full_comes_last_or_not_at_all() {
        let all = Lengths::of(vec![1; 103]).unwrap();
        let mut settings = settings(10);
        let ranks = Ranks {
            world: 2,
            remainder: Remainder::Drop,
        };
        let shuffle = Some(Shuffle { seed: 5, epoch: 1 });
        let sizes = |settings: TokenBatches| -> Vec<usize> {
            let epoch = settings.plan(&all, shuffle, ranks);
            let all = steps(&epoch, 2).concat();
            all.into_iter().map(|(samples, _)| samples.len()).collect()
        };
        let full = sizes(settings);
        assert_eq!((full.len(), &full[..10]), (12, &[10; 10][..]));
        assert_eq!(full[10] + full[11], 3);
        settings.drop_last = true;
        assert_eq!(sizes(settings), [10; 10]);
    }

    #[test]
    fn a_short_batch_of_an_even_step_comes_last_or_not_at_all() {
        let all = Lengths::of(vec![1; 98]).unwrap();
        let mut settings = settings(10);
        let ranks = Ranks {
            world: 2,
            remainder: Remainder::Drop,
        };
        for seed in 0..5 {
            settings.drop_last = false;
            let shuffle = Some(Shuffle { seed, epoch: 0 });
            let last = steps(&settings.plan(&all, shuffle, ranks), 2)
                .pop()
                .unwrap();
            let sizes: Vec<usize> = last.iter().map(|(samples, _)| samples.len()).collect();
            assert!(sizes == [8, 10] || sizes == [10, 8]);
            settings.drop_last = true;
            assert_eq!(settings.plan(&all, shuffle, ranks).steps(), 4);
        }
    }
}
