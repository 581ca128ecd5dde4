//! Rounds sizes up, so that batches of nearly equal size reuse one another's memory.
//!
//! There are eight classes between two powers of two, so a block is at most 12.5 % larger than its lease.

/// From this size on, in bytes, blocks are kept for reuse: zeroing a new one takes as long as filling it.
/// Smaller ones are left to the system allocator, which reuses them well.
pub(super) const SMALLEST: usize = 4 << 10;

/// From this size on, in bytes, each block is a mapping of its own: the system limits the mappings of a
/// process.
pub(super) const MAPPED: usize = 64 << 10;

/// Rounds `bytes` up to its class; None on overflow.
pub(super) fn round(bytes: usize) -> Option<usize> {
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    // bytes lies in (2^k, 2^(k+1)], whose classes are 2^(k-3) apart
    let step = 1 << ((bytes - 1).ilog2() - 3);
    bytes.checked_next_multiple_of(step)
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn at_most_an_eighth_is_wasted(bytes in SMALLEST..1 << 40) {
            let class = round(bytes).unwrap();
            prop_assert!(class >= bytes);
            prop_assert!((class - bytes) * 8 <= bytes);
        }

        #[test]
        fn rounding_a_class_changes_nothing(bytes in 0..1_usize << 40) {
            let class = round(bytes).unwrap();
            prop_assert_eq!(round(class), Some(class));
            prop_assert_eq!(class % if class < MAPPED { 512 } else { 4096 }, 0);
        }

        #[test]
        fn order_is_kept(a in 0..1_usize << 40, b in 0..1_usize << 40) {
            prop_assert!(round(a.min(b)) <= round(a.max(b)));
        }
    }

    #[test]
    fn an_overflow_is_none() {
        assert_eq!(round(usize::MAX), None);
    }
}
