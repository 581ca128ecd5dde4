//! The reference count of a slot of memory that two processes share.
//!
//! Owns one atomic number and its memory ordering: a process that takes a free slot sees everything that the
//! last holders did to it. Refuses to know the slot.

use crate::sync::atomic::{AtomicU32, Ordering};

/// See the module's documentation. Four zero bytes mean no holder.
#[repr(transparent)]
pub(super) struct RefCount(AtomicU32);

impl RefCount {
    /// Goes from 0 to 1: the caller becomes the only holder. Returns false if the slot is held.
    pub(super) fn take_free(&self) -> bool {
        // Acquire pairs with the Release of `release`: the last holder's accesses come before.
        let (from, to) = (Ordering::Acquire, Ordering::Relaxed);
        self.0.compare_exchange(0, 1, from, to).is_ok()
    }

    /// Adds a holder; returns false if there is none, so that the slot is free.
    pub(super) fn add(&self) -> bool {
        let one_more = |count: u32| (count > 0).then(|| count + 1);
        let order = Ordering::Relaxed; // the caller knows of the slot through a holder
        self.0.fetch_update(order, order, one_more).is_ok()
    }

    /// Removes a holder.
    pub(super) fn release(&self) {
        // Its accesses come before this: Release.
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Returns true if the slot is free; the accesses of its last holders are then visible.
    pub(super) fn is_zero(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{Arc, explore};
    use loom::cell::UnsafeCell;
    use loom::thread;

    /// A slot: loom fails if two threads access its bytes at once, or one does not see the other's writes.
    struct Slot {
        count: RefCount,
        bytes: UnsafeCell<u32>,
    }

    // SAFETY: the models check that it may be shared.
    #[allow(unsafe_code)]
    unsafe impl Sync for Slot {}

    fn slot(holders: u32) -> Arc<Slot> {
        Arc::new(Slot {
            count: RefCount(AtomicU32::new(holders)),
            bytes: UnsafeCell::new(0),
        })
    }

    /// The process that takes slots writes one whenever it is free; the other, which has a batch in it, reads
    /// it through two tensors and drops both.
    #[test]
    fn loom_a_slot_is_written_after_its_last_reader() {
        explore(None, || {
            let slot = slot(1);
            assert!(slot.count.add());
            let readers = [(); 2].map(|()| {
                let slot = Arc::clone(&slot);
                thread::spawn(move || {
                    slot.bytes.with(|_| ());
                    slot.count.release();
                })
            });
            if slot.count.take_free() {
                slot.bytes.with_mut(|_| ());
                slot.count.release();
            }
            for reader in readers {
                reader.join().unwrap();
            }
            assert!(slot.count.is_zero());
        });
    }

    /// `Arena::free_pages` only frees the pages of a free slot, and no process can take the slot meanwhile.
    #[test]
    fn loom_pages_are_freed_only_without_holders() {
        explore(None, || {
            let slot = slot(1);
            let reader = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with(|_| ());
                    slot.count.release();
                }
            });
            let went = slot.count.take_free();
            if went {
                slot.bytes.with_mut(|_| ());
                slot.count.release();
            }
            reader.join().unwrap();
            assert!(slot.count.take_free(), "free, whether they went or not");
            slot.bytes.with_mut(|_| ());
        });
    }

    /// A holder may add a share; it counts, whenever the other share ends.
    #[test]
    fn loom_a_share_of_a_share_holds() {
        explore(None, || {
            let slot = slot(2);
            let other = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with(|_| ());
                    slot.count.release();
                }
            });
            assert!(slot.count.add());
            slot.count.release();
            assert!(!slot.count.take_free() && !slot.count.is_zero());
            slot.bytes.with(|_| ());
            slot.count.release();
            other.join().unwrap();
            assert!(slot.count.is_zero());
            assert!(!slot.count.add(), "no holder can add one");
            slot.bytes.with_mut(|_| ());
        });
    }

    /// The other process may check whether an arena is free, and unmap it then.
    #[test]
    fn loom_an_arena_goes_after_its_last_holder() {
        explore(None, || {
            let slot = slot(1);
            let holder = thread::spawn({
                let slot = Arc::clone(&slot);
                move || {
                    slot.bytes.with_mut(|_| ());
                    slot.count.release();
                }
            });
            if slot.count.is_zero() {
                slot.bytes.with_mut(|_| ());
            }
            holder.join().unwrap();
        });
    }
}
