//! Orders samples so that neighbours have similar lengths, while the order at large is random.

use super::Lengths;

/// Sorts each window of `window` samples by length, alternately ascending and descending.
///
/// Lengths then never jump, not even between windows: wherever the order is cut into batches, and batches
/// into steps, neighbours have similar lengths. Equal lengths keep their order in ascending windows.
pub(super) fn gather(order: &mut [u32], lengths: &Lengths, window: usize) {
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
