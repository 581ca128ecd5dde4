//! Memory that a worker process shares with its parent: many slots of one size.
//!
//! Owns a nameless mapping of shared memory: one page of reference counts, one per slot, then the slots. A
//! count says how many holders the slot has, in both processes together; at 0 the slot is free, and the
//! worker may take it again. So giving a slot back is one atomic subtraction, from any thread, without a
//! message. Refuses to know the other process. Invariant: a slot's bytes are touched only by its holders, and
//! only the process that made the arena takes free slots.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;

use memmap2::{MmapOptions, MmapRaw};

use super::ref_count::RefCount;
use super::{Owner, shared};
use crate::fork;
use crate::planted::{Bug, planted};
use crate::sync::Arc;

/// Bytes in front of the slots, for their counts.
const HEADER: usize = 4096;

/// Maximum of slots in an arena.
pub const MOST_SLOTS: usize = HEADER / size_of::<RefCount>();

/// A mapping of slots of one size.
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    number: u32,
    slot_bytes: usize,
    slots: usize,
}

impl Arena {
    /// Makes the arena with number `number`; returns it, and the descriptor for the other process.
    pub fn create(number: u32, slot_bytes: usize, slots: usize) -> Result<(Self, OwnedFd)> {
        let len = len(slot_bytes, slots)?;
        let descriptor = shared::create(len as u64)?;
        let arena = Self::open(descriptor.try_clone()?, number, slot_bytes, slots)?;
        Ok((arena, descriptor))
    }

    /// Maps an arena that another process made.
    ///
    /// # Errors
    ///
    /// No arena can have these sizes, or this one has others.
    pub fn open(descriptor: OwnedFd, number: u32, slot_bytes: usize, slots: usize) -> Result<Self> {
        let len = len(slot_bytes, slots)?;
        let file = File::from(descriptor);
        // Greater is allowed: some systems round the size up to pages.
        if file.metadata()?.len() < len as u64 {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "the arena is smaller than its sizes say",
            ));
        }
        Ok(Self {
            map: MmapOptions::new().len(len).map_raw(&file)?,
            number,
            slot_bytes,
            slots,
        })
    }

    /// Returns its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns how many slots there are.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the bytes of one slot.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Returns the number of slots that are held, in either process.
    pub fn held(&self) -> usize {
        let held = |&slot: &usize| !self.ref_count(slot).is_zero();
        (0..self.slots).filter(held).count()
    }

    /// Returns the address of the first slot.
    pub fn start(&self) -> usize {
        self.map.as_ptr().addr() + HEADER
    }

    /// Gives the pages of a slot back to the system if the slot is free; returns true if it was.
    ///
    /// Where single pages can be freed, its bytes are zero afterwards; elsewhere nothing happens to them.
    /// Only the process that takes slots may call it, or the other one after that has ended.
    pub fn free_pages(&self, slot: usize) -> bool {
        let count = self.ref_count(slot);
        if !count.take_free() {
            return false;
        }
        let page = rustix::param::page_size();
        let from = HEADER + slot * self.slot_bytes;
        let to = (from + self.slot_bytes) / page * page;
        let from = from.next_multiple_of(page);
        if let Some(remove) = shared::REMOVE
            && from < to
        {
            // An error is ignored: the pages then simply stay.
            // SAFETY: the range lies within the slot, whose only holder is this function.
            let _ = unsafe { self.map.unchecked_advise_range(remove, from, to - from) };
        }
        count.release();
        true
    }

    /// Returns the reference count of a slot.
    fn ref_count(&self, slot: usize) -> &RefCount {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        #[allow(clippy::cast_ptr_alignment)] // a mapping begins at a page
        let header = self.map.as_ptr().cast::<RefCount>();
        // SAFETY: `len` has checked that the counts of all slots fit in the header.
        let count = unsafe { header.add(slot) };
        // SAFETY: aligned, mapped as long as `self`; both processes access it only as this type, for which
        // any bytes are valid.
        unsafe { &*count }
    }
}

/// Returns the size of an arena, in bytes, header included.
fn len(slot_bytes: usize, slots: usize) -> Result<usize> {
    let len = slot_bytes
        .checked_mul(slots)
        .and_then(|len| len.checked_add(HEADER));
    match len {
        Some(len) if (1..=MOST_SLOTS).contains(&slots) && isize::try_from(len).is_ok() => Ok(len),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            "an arena cannot have these sizes",
        )),
    }
}

/// Some bytes of a slot, and one holder's share in the slot, which ends when this is dropped.
///
/// In a forked child, dropping an inherited share changes nothing: the parent still has it.
#[derive(Debug)]
pub struct ArenaSlot {
    arena: Arc<Arena>,
    slot: usize,
    offset: usize,
    len: usize,
    birth: u64,
}

impl ArenaSlot {
    /// Takes a slot for `len` bytes; None if it is not free or too small.
    pub fn take(arena: &Arc<Arena>, slot: usize, len: usize) -> Option<Self> {
        if len > arena.slot_bytes {
            return None;
        }
        let count = arena.ref_count(slot);
        let is_taken = count.take_free() || planted(Bug::SlotReused) && count.add();
        if !is_taken {
            return None;
        }
        Self::adopt(Arc::clone(arena), slot, 0, len)
    }

    /// Takes over a share that the other process handed over; None if the range does not exist.
    pub fn adopt(arena: Arc<Arena>, slot: usize, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        let fits = slot < arena.slots && end <= arena.slot_bytes;
        fits.then(|| Self {
            arena,
            slot,
            offset,
            len,
            birth: fork::generation(),
        })
    }

    /// Adds a share for `len` bytes at an address in a held slot; None if the address is not in one.
    pub fn share(arena: &Arc<Arena>, address: usize, len: usize) -> Option<Self> {
        let from = address.checked_sub(arena.start())?;
        let (slot, offset) = (from / arena.slot_bytes, from % arena.slot_bytes);
        if slot >= arena.slots || len > arena.slot_bytes - offset {
            return None;
        }
        if !arena.ref_count(slot).add() {
            return None;
        }
        Self::adopt(Arc::clone(arena), slot, offset, len)
    }

    /// Gives the share up without ending it, for the other process to adopt.
    pub fn hand_over(mut self) {
        self.birth = u64::MAX;
    }

    /// Returns the number of the arena, the slot, and the offset of the bytes in it.
    pub fn location(&self) -> (u32, usize, usize) {
        (self.arena.number, self.slot, self.offset)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes, mapped as long as `self`. Another holder writes them only before it hands its
        // share over, or through a tensor, and none exists when this is called.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    /// Copies `bytes`, of the same length, here.
    pub fn write(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "bytes for a slot");
        // SAFETY: both are `len` bytes, and `&mut self` excludes borrows of the slot's bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start(), self.len) };
    }

    fn start(&self) -> *mut u8 {
        let offset = HEADER + self.slot * self.arena.slot_bytes + self.offset;
        // SAFETY: within the mapping: `adopt` has checked slot and offset.
        unsafe { self.arena.map.as_mut_ptr().add(offset) }
    }
}

// SAFETY: `start` is valid for `len` bytes while the slot lives, wherever that moves.
unsafe impl Owner for ArenaSlot {
    fn len(&self) -> usize {
        self.len
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start()
    }
}

impl Drop for ArenaSlot {
    fn drop(&mut self) {
        if !fork::inherited(self.birth) && !planted(Bug::MissingRelease) {
            self.arena.ref_count(self.slot).release();
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    fn both_sides() -> (Arc<Arena>, Arc<Arena>) {
        let (ours, descriptor) = Arena::create(3, 8192, 4).expect("an arena");
        let theirs = Arena::open(descriptor, 3, 8192, 4).expect("the same");
        (Arc::new(ours), Arc::new(theirs))
    }

    #[test]
    fn the_other_process_reads_what_was_written() {
        let (ours, theirs) = both_sides();
        let mut slot = ArenaSlot::take(&ours, 1, 5).unwrap();
        slot.write(b"bytes");
        let (number, slot_number, offset) = slot.location();
        assert_eq!((number, slot_number, offset), (3, 1, 0));
        slot.hand_over();
        let taken = ArenaSlot::adopt(theirs, 1, 0, 5).unwrap();
        assert_eq!(taken.bytes(), b"bytes");
        assert!(ArenaSlot::take(&ours, 1, 5).is_none());
        drop(taken);
        assert_eq!(ours.held(), 0);
        assert!(ArenaSlot::take(&ours, 1, 5).is_some());
    }

    #[test]
    fn a_slot_is_free_after_its_last_share() {
        let (ours, _) = both_sides();
        let mut slot = ArenaSlot::take(&ours, 0, 100).unwrap();
        let inside = slot.as_mut_ptr().addr() + 10;
        let share = ArenaSlot::share(&ours, inside, 20).unwrap();
        assert_eq!(share.location(), (3, 0, 10));
        drop(slot);
        assert_eq!(ours.held(), 1);
        assert!(!ours.free_pages(0));
        drop(share);
        assert!(ours.free_pages(0));
        assert!(ArenaSlot::share(&ours, inside, 20).is_none());
        assert!(ArenaSlot::share(&ours, 1, 20).is_none());
        assert!(ArenaSlot::share(&ours, ours.start(), usize::MAX).is_none());
    }

    #[test]
    fn freed_pages_are_zero_where_single_pages_are_freed() {
        let (ours, theirs) = both_sides();
        let mut slot = ArenaSlot::take(&ours, 2, 8192).unwrap();
        slot.write(&[7; 8192]);
        drop(slot);
        assert!(ours.free_pages(2));
        let again = ArenaSlot::adopt(theirs, 2, 0, 8192).unwrap();
        let left = if shared::FREES_SINGLE_PAGES { 0 } else { 7 };
        assert!(again.bytes().iter().all(|&byte| byte == left));
        again.hand_over();
    }

    #[test]
    fn impossible_sizes_and_ranges_are_refused() {
        let (arena, descriptor) = Arena::create(0, 4096, 1).unwrap();
        assert!(Arena::open(descriptor, 0, 1 << 20, 2).is_err());
        for (bytes, slots) in [(4096, 0), (4096, MOST_SLOTS + 1), (usize::MAX / 2, 3)] {
            assert!(Arena::create(0, bytes, slots).is_err());
        }
        let arena = Arc::new(arena);
        assert!(ArenaSlot::adopt(Arc::clone(&arena), 1, 0, 1).is_none());
        assert!(ArenaSlot::adopt(Arc::clone(&arena), 0, usize::MAX, 2).is_none());
        assert!(ArenaSlot::take(&arena, 0, 4097).is_none());
        assert_eq!(arena.held(), 0);
    }

    #[test]
    fn dropping_an_inherited_share_changes_nothing() {
        let (ours, _) = both_sides();
        let slot = ArenaSlot::take(&ours, 0, 1).unwrap();
        // SAFETY: the child only drops a slot and leaves.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(slot);
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: `status` is a live int, `pid` our child.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(ours.held(), 1);
        drop(slot);
        assert_eq!(ours.held(), 0);
    }
}
