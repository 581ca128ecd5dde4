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
