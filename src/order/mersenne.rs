//! The generator MT19937 (Matsumoto and Nishimura, 1998), a block of numbers at a time.
#![allow(clippy::inline_always)] // vectorised in loops of other modules

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
