//! Plans batches of documents that are packed into bins.

use std::num::NonZeroU32;

use super::bins::{full_pieces, last_piece};
use super::fit::{best_fit, first_fit};
use super::shuffle::{Purpose, samples};
use super::{Epoch, Lengths, Long, Measure, Ranks, Shuffle, Strategy};

/// The settings of packed batches.
#[derive(Clone, Copy, Debug)]
pub struct PackedBatches {
    /// Tokens of a bin.
    pub room: NonZeroU32,
    /// The packing strategy.
    pub strategy: Strategy,
    /// Bins per batch; a document that alone needs more makes a larger batch.
    pub rows: usize,
    /// Number of documents packed together.
    pub window: usize,
    /// The treatment of documents longer than a bin; with `Keep` they are cut.
    pub long: Long,
    /// True if a last step that is not full is dropped.
    pub drop_last: bool,
}

/// Documents that stay in one batch.
#[derive(Clone, Copy, Debug)]
struct Group {
    start: usize,
    end: usize,
    /// The number of bins that they take.
    rows: u64,
}

impl PackedBatches {
    /// Plans an epoch: packs documents into bins, and distributes the bins, in random order with `shuffle`,
    /// to batches.
    ///
    /// All pieces of a document are in one batch. Where documents may be cut anywhere
    /// ([`Strategy::ConcatSplit`]), whole batches are packed at once. O(n log n).
    pub fn plan(&self, lengths: &Lengths, shuffle: Option<Shuffle>, ranks: Ranks) -> Epoch {
        let lengths = match self.long {
            Long::Truncate => lengths.up_to(self.room.get()),
            Long::Keep | Long::Drop => lengths.clone(),
        };
        let mut order = samples(lengths.len(), shuffle);
        if self.long == Long::Drop {
            order.retain(|&sample| lengths.at(sample) <= self.room.get());
        }
        let mut groups = self.gather(&mut order, &lengths);
        if let Some(shuffle) = shuffle {
            shuffle.draws(Purpose::Bins).shuffle(&mut groups);
            order = groups
                .iter_mut()
                .scan(0, |at, group| {
                    let samples = &order[group.start..group.end];
                    (group.start, group.end) = (*at, *at + samples.len());
                    *at = group.end;
                    Some(samples)
                })
                .flatten()
                .copied()
                .collect();
        }
        let (ends, last_is_full) = self.batches(&groups);
        let dealt = ranks.deal(&ends, last_is_full, self.drop_last, 1);
        let measure = Measure::Bins(self.strategy, self.room);
        Epoch::new(lengths, order, dealt, measure)
    }

    /// Packs the documents of each window, and reorders `order` to the order of the bins.
    fn gather(&self, order: &mut [u32], lengths: &Lengths) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut first = 0;
        for window in order.chunks_mut(self.window.max(1)) {
            let all = window.iter().map(|&sample| lengths.at(sample));
            let fit = match self.strategy {
                Strategy::BestFit => best_fit(&self.last_pieces(all), self.room.get()),
                Strategy::FirstFit => first_fit(&self.last_pieces(all), self.room.get()),
                Strategy::ConcatSplit => {
                    let room = self.batch_room();
                    let sizes: Vec<u32> = all.map(|length| length.min(room)).collect();
                    best_fit(&sizes, room)
                }
            };
            let (places, ends) = fit.by_bin();
            let sorted: Vec<u32> = places.iter().map(|&place| window[place as usize]).collect();
            window.copy_from_slice(&sorted);
            let mut start = 0;
            for end in ends {
                let rows = self.rows_of(&window[start..end], lengths);
                groups.push(Group {
                    start: first + start,
                    end: first + end,
                    rows,
                });
                start = end;
            }
            first += window.len();
        }
        groups
    }

    fn last_pieces(&self, lengths: impl Iterator<Item = u32>) -> Vec<u32> {
        lengths
            .map(|length| last_piece(length, self.room))
            .collect()
    }

    /// Returns the tokens of a batch.
    fn batch_room(&self) -> u32 {
        let rows = u32::try_from(self.rows).unwrap_or(u32::MAX);
        self.room.get().saturating_mul(rows)
    }

    /// Returns the number of bins that the documents of a group take.
    fn rows_of(&self, group: &[u32], lengths: &Lengths) -> u64 {
        let all = group.iter().map(|&sample| lengths.at(sample));
        match self.strategy {
            Strategy::ConcatSplit => all
                .map(u64::from)
                .sum::<u64>()
                .div_ceil(u64::from(self.room.get()))
                .max(1),
            _ => {
                1 + all
                    .map(|length| full_pieces(length, self.room))
                    .sum::<u64>()
            }
        }
    }

    /// Returns the end of each batch, and whether the last batch has all of its rows.
    fn batches(&self, groups: &[Group]) -> (Vec<usize>, bool) {
        let most = self.rows as u64;
        let whole = self.strategy == Strategy::ConcatSplit;
        let mut ends: Vec<usize> = Vec::new();
        let mut rows = 0;
        for group in groups {
            match ends.last_mut() {
                Some(end) if !whole && rows + group.rows <= most => {
                    *end = group.end;
                    rows += group.rows;
                }
                _ => {
                    ends.push(group.end);
                    rows = group.rows;
                }
            }
        }
        (ends, rows >= most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Strategy; // not proptest's
    use super::*;
    use crate::plan::{Remainder, pack};

    proptest! {
        #[test]
        fn no_batch_needs_more_bins_than_planned(
            lengths in prop::collection::vec(0_u32..=70, 0..200),
            rows in 1_usize..4,
            world in 1_usize..5,
            strategy in prop_oneof![
                Just(Strategy::BestFit),
                Just(Strategy::FirstFit),
                Just(Strategy::ConcatSplit),
            ],
            seed: Option<u64>,
        ) {
            let room = NonZeroU32::new(32).unwrap();
            let batches = PackedBatches {
                room, strategy, rows, window: 50, long: Long::Keep, drop_last: false,
            };
            let all = Lengths::of(lengths.clone()).unwrap();
            let ranks = Ranks { world, remainder: Remainder::Mask };
            let shuffle = seed.map(|seed| Shuffle { seed, epoch: 0 });
            let epoch = batches.plan(&all, shuffle, ranks);
            let mut times = vec![0; lengths.len()];
            for step in 0..epoch.steps() {
                for rank in 0..world {
                    let (samples, filler) = epoch.batch(step, rank).unwrap();
                    for &sample in samples.iter().filter(|_| !filler) {
                        times[sample as usize] += 1;
                    }
                    let documents: Vec<u32> = samples.iter().map(|&s| lengths[s as usize]).collect();
                    let cut: u64 = documents.iter().map(|&length| full_pieces(length, room)).sum();
                    let bins = pack(&documents, room, strategy).len() as u64;
                    let alone = strategy == Strategy::ConcatSplit && samples.len() == 1;
                    prop_assert!(bins <= rows as u64 || alone || cut + 1 > rows as u64, "{bins} bins");
                }
            }
            prop_assert!(times.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn many_small_documents_leave_little_room() {
        let lengths: Vec<u32> = (0..20_000).map(|i| i * 7919 % 200 + 1).collect();
        let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let all = Lengths::of(lengths).unwrap();
        let batches = PackedBatches {
            room: NonZeroU32::new(2048).unwrap(),
            strategy: Strategy::BestFit,
            rows: 1,
            window: 4096,
            long: Long::Truncate,
            drop_last: false,
        };
        let ranks = Ranks {
            world: 1,
            remainder: Remainder::Drop,
        };
        let epoch = batches.plan(&all, Some(Shuffle { seed: 1, epoch: 0 }), ranks);
        let stats = epoch.stats();
        assert!(stats.waste < 0.01, "{stats:?}");
        assert_eq!(stats.samples, 20_000);
        assert!(sum <= epoch.steps() as u64 * 2048);
    }
}
