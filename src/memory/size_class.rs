//! Rounds sizes up, so that batches of nearly equal size reuse one another's memory.
//!
//! Between two powers of two lie eight classes: a block is at most 12.5 % larger than what it
//! was made for.

/// From this size on, in bytes, blocks are kept for reuse: zeroing one anew takes as long as filling it.
/// Smaller ones are the system allocator's, which reuses them well.
pub(super) const SMALLEST: usize = 4 << 10;

/// From this size on, in bytes, blocks are mapped, each by itself: mappings of a process are counted.
pub(super) const MAPPED: usize = 64 << 10;

/// Rounds `bytes` up to its class; `None` when that overflows.
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
        fn a_class_is_its_own(bytes in 0..1_usize << 40) {
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
    fn what_cannot_be_is_none() {
        assert_eq!(round(usize::MAX), None);
    }
}
