//! A random permutation, drawn piece by piece.
//!
//! Owns the algorithm of `torch.randperm` on the CPU: the forward shuffle of Fisher and Yates (Knuth, "The
//! Art of Computer Programming", volume 2, algorithm P) with MT19937 (Matsumoto and Nishimura, 1998), each
//! draw reduced by a division. An index is final as soon as its position is drawn.

use rand_mt::Mt;

/// Number of draws before their indices are swapped.
const AT_ONCE: usize = 64;

/// The drawn part of a permutation, and the rest.
#[derive(Debug)]
pub struct Permutation {
    random: Mt,
    /// The first `drawn` ones are final, the others in no order.
    places: Vec<u32>,
    drawn: usize,
}

impl Permutation {
    /// The maximum length: torch draws longer permutations with twice as many bits.
    pub const MOST: u32 = u32::MAX / 20 - 1;

    /// Makes the first permutation of `0..len` that a generator seeded with `seed` draws; MT19937 uses the
    /// lower half of the seed. None above [`Permutation::MOST`].
    pub fn new(len: usize, seed: u64) -> Option<Permutation> {
        let len = u32::try_from(len).ok().filter(|&len| len <= Self::MOST)?;
        Some(Permutation {
            random: Mt::new(seed as u32),
            places: (0..len).collect(),
            drawn: 0,
        })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Permutation;

    fn drawn(permutation: &mut Permutation, count: usize) -> Vec<i64> {
        let mut out = vec![[0; 8]; count.min(permutation.left())];
        permutation.draw(&mut out);
        out.into_iter().map(i64::from_ne_bytes).collect()
    }

    #[test]
    fn what_torch_draws_in_another_way_is_refused() {
        assert!(Permutation::new(Permutation::MOST as usize + 1, 0).is_none());
        assert!(Permutation::new(usize::MAX, 0).is_none());
    }

    proptest! {
        #[test]
        fn pieces_are_those_of_the_whole(
            len in 0_usize..2000,
            seed: u64,
            pieces in prop::collection::vec(0_usize..900, 0..5),
        ) {
            let whole = drawn(&mut Permutation::new(len, seed).unwrap(), len);
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.iter().copied().eq((0..).take(len)));
            let mut permutation = Permutation::new(len, seed).unwrap();
            let mut joined = Vec::new();
            for piece in pieces.into_iter().chain([len]) {
                joined.extend(drawn(&mut permutation, piece));
            }
            prop_assert_eq!(permutation.left(), 0);
            prop_assert_eq!(joined, whole);
        }
    }
}
