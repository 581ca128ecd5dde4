//! A table that tells most positions from a set of others by their last bits.
//!
//! Small enough for the second cache of a core, where a test costs a nanosecond or less.
#![allow(unsafe_code)]

/// Positions that are tested at once, one per bit of the result.
pub(super) const TESTED: usize = 64;

/// Words of the table, 512 KiB.
const WORDS: usize = 1 << 17;

/// One bit for all positions with the same last bits.
pub(super) struct Table(Box<[u32; WORDS]>);

impl Table {
    /// Makes a table without positions.
    pub(super) fn new() -> Table {
        let words = vec![0; WORDS].into_boxed_slice().try_into();
        Table(words.expect("a slice of that many words"))
    }

    /// Returns true if two positions have the same bit.
    pub(super) fn is_same(one: u32, other: u32) -> bool {
        ((one ^ other) as usize).is_multiple_of(32 * WORDS)
    }

    /// Adds a position, or removes it.
    pub(super) fn flip(&mut self, position: u32) {
        self.0[word(position)] ^= 1 << (position & 31);
    }

    /// Returns one bit per position: set if the position may be in the table, or is below `least`. Their number is
    /// a multiple of 8 and [`TESTED`] at most.
    pub(super) fn test(&self, positions: &[u32], least: u32) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has the instructions, as detected.
            return unsafe { avx2::test(&self.0, positions, least) };
        }
        self.test_singly(positions, least)
    }

    fn test_singly(&self, positions: &[u32], least: u32) -> u64 {
        positions.iter().rev().fold(0, |hits, &position| {
            let word = self.0[word(position)];
            hits << 1 | u64::from(word >> (position & 31) & 1) | u64::from(position < least)
        })
    }
}

/// Returns the word with the bit of a position, which is its bit `position & 31`.
fn word(position: u32) -> usize {
    position as usize / 32 % WORDS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TESTED, Table, WORDS};

    proptest! {
        #[test]
        fn positions_in_the_table_or_below_the_least_are_hits(
            mut tested in prop::collection::vec(0..u32::MAX / 2, 0..=TESTED / 8),
            held in prop::collection::vec(0..u32::MAX / 2, 0..20),
            least in 0..u32::MAX / 2,
        ) {
            let mut table = Table::new();
            for &position in &held {
                table.flip(position);
            }
            let last = 32 * WORDS as u32 - 1;
            tested = tested.iter().flat_map(|&one| [one, !one & last, one | 31, one & !31, 0, least]).chain(held.clone()).collect();
            tested.truncate(TESTED);
            tested.resize(tested.len().next_multiple_of(8), least);
            let hits = table.test(&tested, least);
            prop_assert_eq!(hits, table.test_singly(&tested, least));
            for (at, &position) in tested.iter().enumerate() {
                let times = held.iter().filter(|&&one| Table::is_same(one, position)).count();
                prop_assert_eq!(hits >> at & 1 == 1, times % 2 == 1 || position < least);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #[allow(clippy::wildcard_imports)] // one instruction each
    use std::arch::x86_64::*;

    use super::WORDS;

    const LAST: i32 = (WORDS as u32 - 1).cast_signed();

    /// Does the same as the loop of single positions, which must be fewer than 2^31, by eight.
    #[target_feature(enable = "avx2")]
    pub(super) fn test(words: &[u32; WORDS], positions: &[u32], least: u32) -> u64 {
        let (eights, rest) = positions.as_chunks::<8>();
        debug_assert!(rest.is_empty());
        let least = _mm256_set1_epi32(least.cast_signed());
        let (last_bit, last_word) = (_mm256_set1_epi32(31), _mm256_set1_epi32(LAST));
        let mut hits = 0;
        for eight in eights.iter().rev() {
            // SAFETY: reads 32 bytes, the size of the array, at any alignment.
            let positions = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            let word = _mm256_and_si256(_mm256_srli_epi32::<5>(positions), last_word);
            // SAFETY: reads words at indices that are below their number, by the mask.
            let words = unsafe { _mm256_i32gather_epi32::<4>(words.as_ptr().cast(), word) };
            // The bit that stands for the position becomes the sign.
            let shift = _mm256_andnot_si256(positions, last_bit);
            let found = _mm256_sllv_epi32(words, shift);
            let found = _mm256_or_si256(found, _mm256_cmpgt_epi32(least, positions));
            let signs = _mm256_movemask_ps(_mm256_castsi256_ps(found)).cast_unsigned();
            hits = hits << 8 | u64::from(signs);
        }
        hits
    }
}
