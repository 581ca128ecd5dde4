//! The swaps of a shuffle, a block of them at a time.
//!
//! Owns the algorithm of `torch.randperm` on the CPU: the forward shuffle of Fisher and Yates (Knuth, "The
//! Art of Computer Programming", volume 2, algorithm P). Step `i` of `n` swaps positions `i` and
//! `i + r % (n - i)`, and `r` is the next number of MT19937 (Matsumoto and Nishimura, 1998).
#![allow(clippy::inline_always)] // vectorised

use crate::wide::wide;

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

/// Numbers of a block: the words of the generator's state.
pub(super) const BLOCK: usize = 624;

/// A word is made of the one before it by a block, its neighbour, and the one this much further.
const MIDDLE: usize = 397;

/// The generator, at one of its blocks.
#[derive(Clone, Debug)]
pub(super) struct Mersenne(Box<[u32; BLOCK]>);

impl Mersenne {
    /// Makes the generator before its first block.
    pub(super) fn new(seed: u32) -> Mersenne {
        let mut words = Box::new([seed; BLOCK]);
        for at in 1..BLOCK {
            let before = words[at - 1] ^ (words[at - 1] >> 30);
            words[at] = before.wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        Mersenne(words)
    }

    /// Goes on to the next block.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        const GAP: usize = BLOCK - MIDDLE;
        let words = &mut *self.0;
        let last = words[BLOCK - 1];
        // Parts that do not overlap, for the compiler: words are made from others that are far enough away.
        let (new, old) = words.split_at_mut(MIDDLE);
        twist(&mut new[..=GAP], old);
        let (old, new) = words.split_at_mut(GAP);
        twist(&mut new[..=GAP], old);
        let (old, new) = words.split_at_mut(2 * GAP);
        twist(new, &old[GAP..]);
        words[BLOCK - 1] = words[MIDDLE - 1] ^ twisted(last, words[0]);
    }

    /// Returns a number of the block.
    #[inline(always)]
    pub(super) fn number(&self, at: usize) -> u32 {
        let mut word = self.0[at];
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }
}

/// Makes all words but the last, which is the neighbour of the one before it.
#[inline(always)]
fn twist(words: &mut [u32], further: &[u32]) {
    let count = words.len() - 1;
    let further = &further[..count];
    for at in 0..count {
        words[at] = further[at] ^ twisted(words[at], words[at + 1]);
    }
}

#[inline(always)]
fn twisted(word: u32, next: u32) -> u32 {
    let joined = (word & 0x8000_0000) | (next & 0x7fff_ffff);
    (joined >> 1) ^ ((next & 1).wrapping_neg() & 0x9908_b0df)
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

#[cfg(test)]
mod mersenne_tests {
    use super::{BLOCK, Mersenne};

    #[test]
    fn the_ten_thousandth_number_is_that_of_the_standard() {
        // ISO/IEC 14882, [rand.predef]: of `std::mt19937` with its default seed
        let mut random = Mersenne::new(5489);
        for _ in 0..10_000_usize.div_ceil(BLOCK) {
            random.advance();
        }
        assert_eq!(random.number(9_999 % BLOCK), 4_123_659_995);
    }
}
