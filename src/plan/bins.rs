//! Packs documents into bins: the rows of a packed batch.

use std::num::NonZeroU32;

use super::fit::{self, Fit};

/// The packing strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Longest documents first, each into the bin that it fills most.
    BestFit,
    /// In order, each into the first bin with room.
    FirstFit,
    /// In order, one after the other; a document is cut where a bin is full.
    ConcatSplit,
}

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the document among those packed.
    pub sample: usize,
    /// Its first token in the bin.
    pub start: u32,
    /// One past its last token in the bin.
    pub stop: u32,
}

/// The pieces of one bin, in order.
pub type Bin = Vec<Piece>;

/// Packs documents into bins of `room` tokens.
///
/// A document that is longer than a bin is cut: its last piece is packed like other documents, the pieces
/// before it fill a bin each. No strategy takes more bins than packing the documents in order, so a batch of
/// [`PackedBatches`](super::PackedBatches) never needs more bins than planned.
pub fn pack(lengths: &[u32], room: NonZeroU32, strategy: Strategy) -> Vec<Bin> {
    if strategy == Strategy::ConcatSplit {
        return concat_split(lengths, room.get());
    }
    let (places, ends) = fitted(lengths, room, strategy).by_bin();
    let mut bins = Vec::with_capacity(ends.len());
    let mut start = 0;
    for end in ends {
        let mut bin = Bin::with_capacity(end - start);
        for &place in &places[start..end] {
            let (sample, room) = (place as usize, room.get());
            let mut at = 0;
            while lengths[sample] - at > room {
                let (start, stop) = (at, at + room);
                bins.push(vec![Piece {
                    sample,
                    start,
                    stop,
                }]);
                at = stop;
            }
            let (start, stop) = (at, lengths[sample]);
            bin.push(Piece {
                sample,
                start,
                stop,
            });
        }
        bins.push(bin);
        start = end;
    }
    bins
}

/// Returns the number of bins that [`pack`] makes.
pub(super) fn count(lengths: &[u32], room: NonZeroU32, strategy: Strategy) -> u64 {
    if strategy == Strategy::ConcatSplit {
        let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let some = u64::from(!lengths.is_empty());
        return sum.div_ceil(u64::from(room.get())).max(some);
    }
    let full: u64 = lengths
        .iter()
        .map(|&length| full_pieces(length, room))
        .sum();
    full + fitted(lengths, room, strategy).bins as u64
}

/// Returns the number of bins that a document fills before its last piece.
pub(super) fn full_pieces(length: u32, room: NonZeroU32) -> u64 {
    u64::from(length.saturating_sub(1) / room)
}

/// Returns the length of a document's last piece, which is 0 only for an empty document.
pub(super) fn last_piece(length: u32, room: NonZeroU32) -> u32 {
    length - length.saturating_sub(1) / room * room.get()
}

/// Packs the last pieces of documents.
fn fitted(lengths: &[u32], room: NonZeroU32, strategy: Strategy) -> Fit {
    let last = lengths.iter().map(|&length| last_piece(length, room));
    let sizes: Vec<u32> = last.collect();
    let room = room.get();
    let by_strategy = match strategy {
        Strategy::BestFit => fit::best_fit(&sizes, room),
        Strategy::FirstFit | Strategy::ConcatSplit => fit::first_fit(&sizes, room),
    };
    let in_order = fit::next_fit(&sizes, room);
    if in_order.bins < by_strategy.bins {
        in_order
    } else {
        by_strategy
    }
}

fn concat_split(lengths: &[u32], room: u32) -> Vec<Bin> {
    let (mut bins, mut bin, mut left) = (Vec::new(), Bin::new(), room);
    for (sample, &length) in lengths.iter().enumerate() {
        let mut start = 0;
        loop {
            if left == 0 && start < length {
                bins.push(std::mem::take(&mut bin));
                left = room;
            }
            let stop = start + left.min(length - start);
            bin.push(Piece {
                sample,
                start,
                stop,
            });
            left -= stop - start;
            start = stop;
            if start == length {
                break;
            }
        }
    }
    if !bin.is_empty() {
        bins.push(bin);
    }
    bins
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Strategy; // not proptest's
    use super::*;

    const ALL: [Strategy; 3] = [Strategy::BestFit, Strategy::FirstFit, Strategy::ConcatSplit];

    fn sizes(bins: &[Bin]) -> Vec<Vec<(usize, u32, u32)>> {
        let pieces = |bin: &Bin| bin.iter().map(|p| (p.sample, p.start, p.stop)).collect();
        bins.iter().map(pieces).collect()
    }

    #[test]
    fn documents_are_where_they_belong() {
        let room = NonZeroU32::new(10).unwrap();
        let best = pack(&[3, 7, 4, 6], room, Strategy::BestFit);
        assert_eq!(
            sizes(&best),
            [[(0, 0, 3), (1, 0, 7)], [(2, 0, 4), (3, 0, 6)]]
        );
        let apart = pack(&[3, 4, 7, 6], room, Strategy::BestFit);
        assert_eq!(
            sizes(&apart),
            [[(0, 0, 3), (2, 0, 7)], [(1, 0, 4), (3, 0, 6)]]
        );
        let first = pack(&[3, 4, 7, 2], room, Strategy::FirstFit);
        let expected = [vec![(0, 0, 3), (1, 0, 4), (3, 0, 2)], vec![(2, 0, 7)]];
        assert_eq!(sizes(&first), expected);
        let split = pack(&[3, 9], room, Strategy::ConcatSplit);
        assert_eq!(sizes(&split), [vec![(0, 0, 3), (1, 0, 7)], vec![(1, 7, 9)]]);
    }

    #[test]
    fn long_documents_are_cut() {
        let room = NonZeroU32::new(10).unwrap();
        for (short, long) in [(4, 25), (2, 21)] {
            let bins = pack(&[short, long], room, Strategy::BestFit);
            let expected = [
                vec![(1, 0, 10)],
                vec![(1, 10, 20)],
                vec![(0, 0, short), (1, 20, long)],
            ];
            assert_eq!(sizes(&bins), expected);
        }
        assert_eq!(pack(&[20], room, Strategy::BestFit).len(), 2);
    }

    proptest! {
        #[test]
        fn every_token_is_in_one_bin(
            lengths in prop::collection::vec(0_u32..40, 0..40), room in 1_u32..30,
        ) {
            let room = NonZeroU32::new(room).unwrap();
            for strategy in ALL {
                let bins = pack(&lengths, room, strategy);
                prop_assert_eq!(bins.len() as u64, count(&lengths, room, strategy));
                let mut seen = vec![0; lengths.len()];
                let mut pieces: Vec<Piece> = bins.concat();
                let by_document = |piece: &Piece| (piece.sample, piece.start);
                prop_assert!(strategy != Strategy::ConcatSplit || pieces.is_sorted_by_key(by_document));
                pieces.sort_by_key(by_document);
                for piece in pieces {
                    prop_assert_eq!(piece.start, seen[piece.sample]);
                    seen[piece.sample] = piece.stop;
                }
                prop_assert_eq!(&seen, &lengths);
                for bin in bins {
                    prop_assert!(!bin.is_empty());
                    let sum: u32 = bin.iter().map(|piece| piece.stop - piece.start).sum();
                    prop_assert!(sum <= room.get());
                }
            }
        }
    }
}
