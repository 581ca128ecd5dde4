//! The indices of a permutation that are not drawn yet.
//!
//! Owns the positions that are left, and makes the swaps. An index is final as soon as its position is drawn.
//! The swap of an index that is left out only moves one other index. Such moves are made region by region, so that
//! every access is sequential or within a region.

use std::mem;

use super::swaps::{Steps, Swaps};

/// Positions of a region, in bits: 1 MiB of them, which the second cache of a core holds.
const REGION_BITS: u32 = 18;

/// Number of moves of a chunk, 32 KiB of them.
const CHUNK: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Remaining {
    steps: Steps,
    /// The last positions: the first `drawn` of them are final, the others in no order.
    places: Vec<u32>,
    drawn: usize,
}

impl Remaining {
    /// Leaves out the first `skip` indices, which must not be more than there are. Returns None if
    /// `is_wanted`, which is called every few milliseconds, returns false.
    pub(super) fn after(
        skip: u32,
        swaps: Swaps,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Remaining> {
        let mut remaining = Remaining::after_regions(skip, REGION_BITS, swaps, is_wanted)?;
        let drawn = skip >> REGION_BITS << REGION_BITS;
        remaining.draw(&mut vec![[0; 8]; (skip - drawn) as usize]);
        Some(remaining)
    }

    /// Leaves out the whole regions among the first `skip` indices.
    fn after_regions(
        skip: u32,
        bits: u32,
        swaps: Swaps,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Remaining> {
        let (len, region) = (swaps.len(), 1 << bits);
        let mut steps = Steps::new(swaps);
        let mut moves = Moves::new(len.div_ceil(region) as usize);
        let mut places = Vec::with_capacity(region as usize);
        let regions = skip >> bits;
        for number in 0..regions {
            if !is_wanted() {
                return None;
            }
            let start = number << bits;
            places.clear();
            places.extend(start..start + region);
            moves.apply(number as usize, &mut places);
            let mut at = 0;
            while at < places.len() {
                let run = steps.run(places.len() - at);
                for (at, &to) in (at..).zip(run) {
                    let index = places[at];
                    let (there, to) = ((to >> bits) as usize, to & (region - 1));
                    if there == number as usize {
                        places[to as usize] = index;
                    } else {
                        moves.add(there, Move { to, index });
                    }
                }
                at += run.len();
            }
        }
        let mut left: Vec<u32> = (regions << bits..len).collect();
        for (number, places) in (regions..).zip(left.chunks_mut(region as usize)) {
            moves.apply(number as usize, places);
        }
        Some(Remaining {
            steps,
            places: left,
            drawn: 0,
        })
    }

    /// Returns how many there are.
    pub(super) fn left(&self) -> usize {
        self.places.len() - self.drawn
    }

    /// Draws the next indices, as many as `out` holds, which must not be more than are left.
    pub(super) fn draw(&mut self, out: &mut [[u8; 8]]) {
        let Remaining {
            steps,
            places,
            drawn,
        } = self;
        let first = steps.len() as usize - places.len();
        let mut out = out.iter_mut();
        while out.len() > 0 {
            for (&other, out) in steps.run(out.len()).iter().zip(&mut out) {
                places.swap(*drawn, other as usize - first);
                *out = i64::from(places[*drawn]).to_ne_bytes();
                *drawn += 1;
            }
        }
    }
}

/// An index and the position in its region that it goes to.
#[derive(Clone, Copy, Default)]
struct Move {
    to: u32,
    index: u32,
}

/// The moves that wait for each region, the oldest first.
struct Moves {
    /// Full chunks.
    full: Vec<Vec<Chunk>>,
    /// The last chunk of each region, empty before the first move, and its number of moves.
    open: Vec<(Chunk, usize)>,
    /// Chunks of regions that were reached.
    free: Vec<Chunk>,
}

/// [`CHUNK`] moves. They are counted elsewhere, which makes adding one cheaper than pushing it.
type Chunk = Vec<Move>;

impl Moves {
    fn new(regions: usize) -> Moves {
        Moves {
            full: vec![Vec::new(); regions],
            open: vec![(Vec::new(), 0); regions],
            free: Vec::new(),
        }
    }

    #[inline]
    fn add(&mut self, region: usize, one: Move) {
        let (open, count) = &mut self.open[region];
        if *count < open.len() {
            open[*count] = one;
            *count += 1;
        } else {
            self.open_with(region, one);
        }
    }

    #[cold]
    fn open_with(&mut self, region: usize, one: Move) {
        let mut chunk = self
            .free
            .pop()
            .unwrap_or_else(|| vec![Move::default(); CHUNK]);
        chunk[0] = one;
        let (full, _) = mem::replace(&mut self.open[region], (chunk, 1));
        if !full.is_empty() {
            self.full[region].push(full);
        }
    }

    fn apply(&mut self, region: usize, places: &mut [u32]) {
        let full = mem::take(&mut self.full[region]);
        let open = mem::take(&mut self.open[region]);
        for (chunk, count) in full.into_iter().map(|chunk| (chunk, CHUNK)).chain([open]) {
            for one in &chunk[..count] {
                places[one.to as usize] = one.index;
            }
            if !chunk.is_empty() {
                self.free.push(chunk);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::{Remaining, Swaps};

    pub(in crate::order) fn drawn(remaining: &mut Remaining, count: usize) -> Vec<i64> {
        let mut out = vec![[0; 8]; count];
        remaining.draw(&mut out);
        out.into_iter().map(i64::from_ne_bytes).collect()
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_drawn(
            len in 1_u32..3000,
            seed: u64,
            bits in 0_u32..8,
            quarters in 0_u32..=4,
        ) {
            let swaps = Swaps::new(len, seed);
            let skip = ((len * quarters / 4) >> bits) << bits;
            let mut rest = Remaining::after_regions(skip, bits, swaps.clone(), || true).unwrap();
            let mut whole = Remaining::after(0, swaps.clone(), || true).unwrap();
            drawn(&mut whole, skip as usize);
            prop_assert_eq!(rest.left(), (len - skip) as usize);
            let count = rest.left();
            prop_assert_eq!(drawn(&mut rest, count), drawn(&mut whole, count));
            prop_assert!(Remaining::after_regions(1 << bits, bits, swaps, || false).is_none());
        }
    }
}
