//! Samples of similar length side by side, in an order that is random from afar.

use super::Lengths;

/// Sorts each stretch of `window` samples by length, one ascending and the next descending.
///
/// Lengths then never jump, not where stretches meet either: however the order is cut into
/// batches, and batches into steps, neighbours are of similar length. Equal lengths keep their
/// order in ascending stretches.
pub(super) fn gather(order: &mut [u32], lengths: &Lengths, window: usize) {
    let mut sorted: Vec<u64> = Vec::new();
    let mut unsorted: Vec<u32> = Vec::new();
    for (turn, stretch) in order.chunks_mut(window.max(1)).enumerate() {
        unsorted.clear();
        unsorted.extend_from_slice(stretch);
        sorted.clear();
        let keys = unsorted.iter().zip(0_u64..);
        sorted.extend(keys.map(|(&sample, place)| u64::from(lengths.at(sample)) << 32 | place));
        sorted.sort_unstable();
        if turn % 2 == 1 {
            sorted.reverse();
        }
        for (to, &key) in stretch.iter_mut().zip(&sorted) {
            *to = unsorted[key as u32 as usize];
        }
    }
}
