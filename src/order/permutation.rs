//! A random permutation, drawn piece by piece.
//!
//! Owns the algorithm of `torch.randperm` on the CPU: the forward shuffle of Fisher and Yates (Knuth, "The
//! Art of Computer Programming", volume 2, algorithm P) with MT19937 (Matsumoto and Nishimura, 1998), each
//! draw reduced by a division. An index is final as soon as its position is drawn.

use std::mem;

use rand_mt::Mt;

/// Number of draws before their indices are swapped.
const AT_ONCE: usize = 64;

/// Number of positions of a region, 1 MiB of them, which a processor's second cache holds.
const REGION: u32 = 1 << 18;

/// Number of moves of a chunk, 32 KiB of them.
const CHUNK: usize = 4096;

/// The drawn part of a permutation, and the rest.
#[derive(Debug)]
pub struct Permutation {
    random: Mt,
    /// The last positions: the first `drawn` of them are final, the others in no order.
    places: Vec<u32>,
    drawn: usize,
}

impl Permutation {
    /// The maximum length: torch draws longer permutations with twice as many bits.
    pub const MOST: u32 = u32::MAX / 20 - 1;

    /// Makes the first permutation of `0..len` that a generator seeded with `seed` draws, without its first
    /// `skip` indices; MT19937 uses the lower half of the seed. None above [`Permutation::MOST`].
    pub fn new(len: usize, seed: u64, skip: usize) -> Option<Permutation> {
        let len = u32::try_from(len).ok().filter(|&len| len <= Self::MOST)?;
        let skip = skip.min(len as usize) as u32;
        let mut random = Mt::new(seed as u32);
        let whole = skip - skip % REGION;
        let mut permutation = Permutation {
            places: left_after(len, whole, REGION, &mut random),
            random,
            drawn: 0,
        };
        permutation.draw(&mut vec![[0; 8]; (skip - whole) as usize]);
        Some(permutation)
    }

    /// Returns the number of indices that are not drawn yet.
    pub fn left(&self) -> usize {
        self.places.len() - self.drawn
    }

    /// Draws the next indices, as many as `out` holds or as are left.
    pub fn draw(&mut self, out: &mut [[u8; 8]]) {
        let count = out.len().min(self.left());
        // All draws come before the swaps, so that neither waits for the other.
        let mut further = [0; AT_ONCE];
        for out in out[..count].chunks_mut(AT_ONCE) {
            let left = (self.places.len() - self.drawn) as u32;
            for (further, left) in further[..out.len()].iter_mut().zip((1..=left).rev()) {
                // The last one needs no draw.
                *further = if left > 1 {
                    self.random.next_u32() % left
                } else {
                    0
                };
            }
            for (place, &further) in out.iter_mut().zip(&further) {
                self.places.swap(self.drawn, self.drawn + further as usize);
                *place = i64::from(self.places[self.drawn]).to_ne_bytes();
                self.drawn += 1;
            }
        }
    }
}

/// Draws the first `skip` indices of a permutation of `0..len`, whole regions, and returns the positions after
/// them. Nobody asks for the drawn ones, so a swap is one move, of the index that leaves the drawn position.
/// Moves to other regions wait until theirs is reached: every access is sequential or within a region.
fn left_after(len: u32, skip: u32, region: u32, random: &mut Mt) -> Vec<u32> {
    let mut moves = Moves::new(len.div_ceil(region) as usize);
    let mut places = Vec::with_capacity(region as usize);
    for start in (0..skip).step_by(region as usize) {
        places.clear();
        places.extend(start..start + region);
        let number = start / region;
        moves.apply(number as usize, &mut places);
        for at in 0..region {
            let drawn = start + at;
            let to = drawn + random.next_u32() % (len - drawn);
            let index = places[at as usize];
            if to / region == number {
                places[(to % region) as usize] = index;
            } else {
                moves.push(
                    (to / region) as usize,
                    Move {
                        to: to % region,
                        index,
                    },
                );
            }
        }
    }
    let mut left: Vec<u32> = (skip..len).collect();
    for (number, places) in (skip / region..).zip(left.chunks_mut(region as usize)) {
        moves.apply(number as usize, places);
    }
    left
}

/// An index and the position in its region that it goes to.
struct Move {
    to: u32,
    index: u32,
}

/// The moves that wait for each region, in chunks, the oldest first.
struct Moves {
    waiting: Vec<Vec<Vec<Move>>>,
    /// The last chunk of each region.
    open: Vec<Vec<Move>>,
    /// Chunks of regions that were reached.
    free: Vec<Vec<Move>>,
}

impl Moves {
    fn new(regions: usize) -> Moves {
        Moves {
            waiting: (0..regions).map(|_| Vec::new()).collect(),
            open: (0..regions).map(|_| Vec::new()).collect(),
            free: Vec::new(),
        }
    }

    fn push(&mut self, region: usize, one: Move) {
        let open = &mut self.open[region];
        if open.len() == open.capacity() {
            let next = self.free.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
            self.waiting[region].push(mem::replace(open, next));
        }
        open.push(one);
    }

    fn apply(&mut self, region: usize, places: &mut [u32]) {
        let waiting = mem::take(&mut self.waiting[region]);
        for mut chunk in waiting
            .into_iter()
            .chain([mem::take(&mut self.open[region])])
        {
            for one in chunk.drain(..) {
                places[one.to as usize] = one.index;
            }
            if chunk.capacity() > 0 {
                self.free.push(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_mt::Mt;

    use super::{Permutation, left_after};

    fn drawn(permutation: &mut Permutation, count: usize) -> Vec<i64> {
        let mut out = vec![[0; 8]; count.min(permutation.left())];
        permutation.draw(&mut out);
        out.into_iter().map(i64::from_ne_bytes).collect()
    }

    #[test]
    fn what_torch_draws_in_another_way_is_refused() {
        assert!(Permutation::new(Permutation::MOST as usize + 1, 0, 0).is_none());
        assert!(Permutation::new(usize::MAX, 0, 0).is_none());
    }

    proptest! {
        #[test]
        fn pieces_are_those_of_the_whole(
            len in 0_usize..2000,
            seed: u64,
            pieces in prop::collection::vec(0_usize..900, 0..5),
        ) {
            let whole = drawn(&mut Permutation::new(len, seed, 0).unwrap(), len);
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.iter().copied().eq((0..).take(len)));
            let mut permutation = Permutation::new(len, seed, 0).unwrap();
            let mut joined = Vec::new();
            for piece in pieces.into_iter().chain([len]) {
                joined.extend(drawn(&mut permutation, piece));
            }
            prop_assert_eq!(permutation.left(), 0);
            prop_assert_eq!(joined, whole);
        }

        #[test]
        fn what_is_skipped_is_drawn(
            len in 1_usize..2000,
            seed: u64,
            bits in 0_u32..8,
            quarters in 0_u32..=4,
        ) {
            let region = 1 << bits;
            let skip = len as u32 * quarters / 4 / region * region;
            let mut random = Mt::new(seed as u32);
            let places = left_after(len as u32, skip, region, &mut random);
            let mut rest = Permutation { random, places, drawn: 0 };
            let mut whole = Permutation::new(len, seed, 0).unwrap();
            drawn(&mut whole, skip as usize);
            prop_assert_eq!(drawn(&mut rest, len), drawn(&mut whole, len));
            let rest = Permutation::new(len, seed, skip as usize).unwrap();
            prop_assert_eq!(rest.left(), len - skip as usize);
        }
    }
}
