//! Packs sizes into bins of equal room, by the three classic algorithms.
//!
//! No size exceeds the room. Bins are numbered in the order in which they are opened.

use std::collections::BTreeSet;

/// The bin of each size.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) bin_of: Vec<u32>,
    pub(super) bins: usize,
}

impl Fit {
    fn new(bin_of: Vec<u32>) -> Fit {
        let bins = bin_of.iter().max().map_or(0, |&last| last as usize + 1);
        Fit { bin_of, bins }
    }

    /// Returns the indices of the sizes bin by bin, in order within each bin, and the end of each bin.
    pub(super) fn by_bin(&self) -> (Vec<u32>, Vec<usize>) {
        let mut ends = vec![0; self.bins];
        for &bin in &self.bin_of {
            ends[bin as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut places = vec![0; self.bin_of.len()];
        for (&bin, place) in self.bin_of.iter().zip(0_u32..) {
            let next = &mut ends[bin as usize];
            places[*next] = place;
            *next += 1;
        }
        (places, ends)
    }
}

/// Puts each size, from the largest down, into the bin that it fills most; O(n log n).
///
/// Packing only the sizes of some of the bins gives the same bins again: which bin is fullest does not depend
/// on the bins left out.
pub(super) fn best_fit(sizes: &[u32], room: u32) -> Fit {
    let mut largest: Vec<u64> = sizes
        .iter()
        .zip(0_u64..)
        .map(|(&size, place)| u64::from(!size) << 32 | place)
        .collect();
    largest.sort_unstable();
    let mut open: BTreeSet<(u32, u32)> = BTreeSet::new(); // room left (not 0), bin
    let mut bin_of = vec![0; sizes.len()];
    let mut bins = 0;
    for key in largest {
        let place = key as u32 as usize;
        let size = sizes[place];
        if size == 0 && bins > 0 {
            continue; // nothing is in the first bin as well as in any
        }
        let fullest = open.range((size, 0)..).next().copied();
        let (left, bin) = fullest.unwrap_or((room, bins));
        match fullest {
            Some(chosen) => drop(open.remove(&chosen)),
            None => bins += 1,
        }
        if left > size {
            open.insert((left - size, bin));
        }
        bin_of[place] = bin;
    }
    Fit::new(bin_of)
}

/// Puts each size, in order, into the first bin with room; O(n log n) with a segment tree.
pub(super) fn first_fit(sizes: &[u32], room: u32) -> Fit {
    let leaves = sizes.len().next_power_of_two();
    // The maximum room below each node; node 1 is the root, the children of n are 2n and 2n + 1.
    let mut most = vec![room; 2 * leaves];
    let bin_of = sizes.iter().map(|&size| {
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(most[node] < size);
        }
        most[node] -= size;
        let bin = node - leaves;
        while node > 1 {
            node /= 2;
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        bin as u32
    });
    Fit::new(bin_of.collect())
}

/// Puts each size, in order, into the last bin, or a new one. No packing that keeps the order takes fewer
/// bins.
pub(super) fn next_fit(sizes: &[u32], room: u32) -> Fit {
    let (mut bin, mut left) = (0, room);
    let bin_of = sizes.iter().map(|&size| {
        if size > left {
            (bin, left) = (bin + 1, room);
        }
        left -= size;
        bin
    });
    Fit::new(bin_of.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: inspects all bins for each size.
    fn slowly(order: &[usize], sizes: &[u32], room: u32, fullest: bool) -> Vec<u32> {
        let mut left: Vec<u32> = Vec::new();
        let mut bin_of = vec![0; sizes.len()];
        for &place in order {
            let size = sizes[place];
            let mut with_room = (0..left.len()).filter(|&bin| left[bin] >= size);
            let chosen = if fullest {
                with_room.min_by_key(|&bin| left[bin])
            } else {
                with_room.next()
            };
            let bin = chosen.unwrap_or(left.len());
            if bin == left.len() {
                left.push(room);
            }
            left[bin] -= size;
            bin_of[place] = bin as u32;
        }
        bin_of
    }

    proptest! {
        #[test]
        fn fits_are_what_their_names_say(sizes in prop::collection::vec(1_u32..=20, 0..60)) {
            let mut order: Vec<usize> = (0..sizes.len()).collect();
            prop_assert_eq!(first_fit(&sizes, 20).bin_of, slowly(&order, &sizes, 20, false));
            order.sort_by_key(|&place| std::cmp::Reverse(sizes[place]));
            prop_assert_eq!(best_fit(&sizes, 20).bin_of, slowly(&order, &sizes, 20, true));
        }

        #[test]
        fn bins_have_room_for_what_is_in_them(sizes in prop::collection::vec(0_u32..=9, 0..60)) {
            for fit in [best_fit(&sizes, 9), first_fit(&sizes, 9), next_fit(&sizes, 9)] {
                let (places, ends) = fit.by_bin();
                let mut start = 0;
                for end in ends {
                    prop_assert!(start < end, "an empty bin");
                    let bin = &places[start..end];
                    prop_assert!(bin.is_sorted());
                    prop_assert!(bin.iter().map(|&place| sizes[place as usize]).sum::<u32>() <= 9);
                    start = end;
                }
                let mut all = places.clone();
                all.sort_unstable();
                prop_assert!(all.into_iter().eq(0..sizes.len() as u32));
            }
        }

        #[test]
        fn some_bins_alone_are_the_same_bins(
            sizes in prop::collection::vec(1_u32..=20, 1..60), every in 1_u32..4,
        ) {
            let all = best_fit(&sizes, 20);
            let (places, _) = all.by_bin();
            let some = places.iter().filter(|&&place| all.bin_of[place as usize].is_multiple_of(every));
            let some: Vec<u32> = some.map(|&place| sizes[place as usize]).collect();
            let expected = (0..all.bins as u32).filter(|bin| bin.is_multiple_of(every)).count();
            prop_assert_eq!(best_fit(&some, 20).bins, expected);
        }
    }
}
