//! The count of who holds a slot of memory that two processes share.
//!
//! Owns one atomic number and the order of what is done around it: whoever holds a slot after it was free sees
//! all that its last holders did. Refuses to know the slot.

use crate::sync::atomic::{AtomicU32, Ordering};

/// See the module's documentation. Four zero bytes are nobody.
#[repr(transparent)]
pub(super) struct Holders(AtomicU32);

impl Holders {
    /// Becomes the only holder, if there is none.
    pub(super) fn first(&self) -> bool {
        let (from, to) = (Ordering::Acquire, Ordering::Relaxed);
        self.0.compare_exchange(0, 1, from, to).is_ok()
    }

    /// Becomes one more holder, if there is one.
    pub(super) fn join(&self) -> bool {
        let one_more = |count: u32| (count > 0).then(|| count + 1);
        let order = Ordering::Relaxed; // the caller knows of the slot by a holder
        self.0.fetch_update(order, order, one_more).is_ok()
    }

    /// Ends one holder.
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Tells whether the slot is free; if so, what its holders did is over.
    pub(super) fn are_none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{Arc, explore};
    use loom::cell::UnsafeCell;
    use loom::thread;

    /// A slot: the model checker fails where two threads are at its bytes, or one does not see the other's.
    struct Slot {
        holders: Holders,
        bytes: UnsafeCell<u32>,
    }

    // SAFETY: that it may be shared is what the models check.
    #[allow(unsafe_code)]
    unsafe impl Sync for Slot {}

    fn slot(holders: u32) -> Arc<Slot> {
        Arc::new(Slot {
            holders: Holders(AtomicU32::new(holders)),
            bytes: UnsafeCell::new(0),
        })
    }

    /// The process that takes slots writes one as often as it is free; the other, which has a batch in it, reads
    /// that from two tensors and drops both.
    #[test]
    fn loom_a_slot_is_written_after_its_last_reader() {
        explore(None, || {
            let slot = slot(1);
            assert!(slot.holders.join());
            let readers = [(); 2].map(|()| {
                let slot = Arc::clone(&slot);
                thread::spawn(move || {
                    slot.bytes.with(|_| ());
                    slot.holders.leave();
                })
            });
            if slot.holders.first() {
                slot.bytes.with_mut(|_| ());
                slot.holders.leave();
            }
            for reader in readers {
                reader.join().unwrap();
            }
            assert!(slot.holders.are_none());
        });
    }

    /// Pages go back, as by `Arena::release`, only of a slot that nobody holds, and nobody takes it meanwhile.
    #[test]
    fn loom_pages_go_back_while_nobody_holds_them() {
        explore(None, || {
            let slot = slot(1);
            let reader = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with(|_| ());
                    slot.holders.leave();
                }
            });
            let went = slot.holders.first();
            if went {
                slot.bytes.with_mut(|_| ());
                slot.holders.leave();
            }
            reader.join().unwrap();
            assert!(slot.holders.first(), "free, whether they went or not");
            slot.bytes.with_mut(|_| ());
        });
    }

    /// Whoever still has a share may make another one; it counts, whenever the other ends.
    #[test]
    fn loom_a_share_of_a_share_holds() {
        explore(None, || {
            let slot = slot(2);
            let other = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with(|_| ());
                    slot.holders.leave();
                }
            });
            assert!(slot.holders.join());
            slot.holders.leave();
            assert!(!slot.holders.first() && !slot.holders.are_none());
            slot.bytes.with(|_| ());
            slot.holders.leave();
            other.join().unwrap();
            assert!(slot.holders.are_none());
            assert!(!slot.holders.join(), "there is nobody to join");
            slot.bytes.with_mut(|_| ());
        });
    }

    /// The other process may look whether an arena is free, and lets go of it then.
    #[test]
    fn loom_an_arena_goes_after_its_last_holder() {
        explore(None, || {
            let slot = slot(1);
            let holder = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with_mut(|_| ());
                    slot.holders.leave();
                }
            });
            if slot.holders.are_none() {
                slot.bytes.with_mut(|_| ());
            }
            holder.join().unwrap();
        });
    }
}
