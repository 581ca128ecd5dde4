//! The swaps of a shuffle, a block of them at a time.
//!
//! Owns the algorithm of `torch.randperm` on the CPU: the forward shuffle of Fisher and Yates (Knuth, "The
//! Art of Computer Programming", volume 2, algorithm P). Step `i` of `n` swaps positions `i` and
//! `i + r % (n - i)`, and `r` is the next number of MT19937.
#![allow(clippy::inline_always)] // vectorised

use super::mersenne::Mersenne;
use crate::wide::wide;

pub(super) use super::mersenne::BLOCK;

/// Divisors from here on change so little within a block that one reciprocal gives each quotient or one less.
const LARGE: u32 = 1 << 22;

/// Bits of a reciprocal. Its product with the other bits of a number has 32.
const PRECISION: u32 = 13;

/// The swaps that are still to come.
#[derive(Clone, Debug)]
pub(super) struct Swaps {
    random: Mersenne,
    len: u32,
    next: u32,
}

impl Swaps {
    /// Makes the swaps of the first permutation of `0..len` that a generator draws; MT19937 uses the lower half
    /// of its seed.
    pub(super) fn new(len: u32, seed: u64) -> Swaps {
        Swaps {
            random: Mersenne::new(seed as u32),
            len,
            next: 0,
        }
    }

    /// Returns the length of the permutation.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the first step of the next block, which must not be above the length.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Leaves out blocks.
    pub(super) fn skip(&mut self, blocks: u32) {
        wide(
            #[inline(always)]
            || (0..blocks).for_each(|_| self.random.advance()),
        );
        self.next += blocks * BLOCK as u32;
    }

    /// Writes the other position of each swap of the next block; steps behind the last have none.
    pub(super) fn draw(&mut self, others: &mut [u32; BLOCK]) {
        wide(
            #[inline(always)]
            || {
                self.random.advance();
                let left = self.len - self.next;
                if left >= LARGE + BLOCK as u32 {
                    self.reduce_by_reciprocal(left, others);
                } else {
                    self.reduce(left, others);
                }
            },
        );
        self.next += BLOCK as u32;
    }

    #[inline(always)]
    fn reduce(&self, left: u32, others: &mut [u32; BLOCK]) {
        for (at, (other, left)) in others.iter_mut().zip((1..=left).rev()).enumerate() {
            *other = self.len - left + self.random.number(at) % left;
        }
    }

    /// Does the same without a division. A quotient is too small by less than 2^-3 for the bits that the
    /// reciprocal lacks, 2^-9 for those that the number loses and 2^-2 for the divisors of the block that are
    /// smaller than its first. No operation overflows but the subtraction that tells a remainder from one that is
    /// too large; checks would keep the compiler from vectorising.
    #[inline(always)]
    fn reduce_by_reciprocal(&self, left: u32, others: &mut [u32; BLOCK]) {
        let scale = left.ilog2();
        let reciprocal = ((1_u64 << (PRECISION + scale)) / u64::from(left)) as u32;
        for (at, other) in others.iter_mut().enumerate() {
            let number = self.random.number(at);
            let divisor = left.wrapping_sub(at as u32);
            let quotient = (number >> PRECISION).wrapping_mul(reciprocal) >> scale;
            let rest = number.wrapping_sub(quotient.wrapping_mul(divisor));
            let rest = rest.min(rest.wrapping_sub(divisor));
            *other = self.next.wrapping_add(at as u32).wrapping_add(rest);
        }
    }
}

/// The swaps that are still to come, one by one.
#[derive(Debug)]
pub(super) struct Steps {
    swaps: Swaps,
    others: Box<[u32; BLOCK]>,
    used: usize,
}

impl Steps {
    /// Makes the steps from the next block on.
    pub(super) fn new(swaps: Swaps) -> Steps {
        Steps {
            swaps,
            others: Box::new([0; BLOCK]),
            used: BLOCK,
        }
    }

    /// Returns the length of the permutation.
    pub(super) fn len(&self) -> u32 {
        self.swaps.len
    }

    /// Returns the other positions of the next swaps, of one at least and of `most` at most.
    pub(super) fn run(&mut self, most: usize) -> &[u32] {
        if self.used == BLOCK {
            self.swaps.draw(&mut self.others);
            self.used = 0;
        }
        let start = self.used;
        self.used = BLOCK.min(start + most);
        &self.others[start..self.used]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, LARGE, Swaps};

    proptest! {
        #[test]
        fn a_reciprocal_gives_the_remainders_of_a_division(
            left in prop_oneof![
                LARGE + BLOCK as u32..=u32::MAX / 20,
                Just(LARGE + BLOCK as u32),
                (23_u32..28, 0_u32..BLOCK as u32).prop_map(|(bits, above)| (1 << bits) + above),
            ],
            seed: u64,
        ) {
            let mut swaps = Swaps::new(left, seed);
            swaps.random.advance();
            let (mut expected, mut found) = ([0; BLOCK], [0; BLOCK]);
            swaps.reduce(left, &mut expected);
            swaps.reduce_by_reciprocal(left, &mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
