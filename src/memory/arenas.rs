//! The arenas of one worker process, by slot size.
//!
//! Owns the choice of the slot that a worker writes next, and when memory that it no longer needs goes back
//! to the system: single slots, or whole arenas where the system cannot free single pages. Refuses to send
//! anything: the caller sends a new arena's descriptor, and the news that one is unmapped. Invariant: an
//! unmapped arena has no holder, and no number is used for two arenas.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::arena::{Arena, ArenaSlot, MOST_SLOTS};
use super::shared::FREES_SINGLE_PAGES;
use crate::error::{Error, Result};
use crate::sync::Arc;

/// Slot sizes are multiples of this, in bytes, so that each slot has its own pages.
const PAGE: usize = 4096;

/// Smaller slots share an arena of about this many bytes: the system limits the mappings of a process.
const ARENA: usize = 4 << 20;

/// The arenas of a worker.
#[derive(Debug, Default)]
pub struct Arenas {
    all: BTreeMap<u32, Tracked>,
    by_size: HashMap<usize, Vec<u32>>,
    next: u32,
    last_trim: Option<Instant>,
}

/// An arena, and when each of its slots was last taken; None for a slot without pages.
#[derive(Debug)]
struct Tracked {
    arena: Arc<Arena>,
    taken: Vec<Option<Instant>>,
}

/// The memory that was given back to the system.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Size of it, in bytes.
    pub bytes: usize,
    /// Arenas that this process unmapped; the other process must unmap them too.
    pub unmapped: Vec<u32>,
}

/// A new arena, and its descriptor for the other process.
pub type NewArena = (Arc<Arena>, OwnedFd);

impl Arenas {
    /// Takes a slot for `bytes` bytes, in a new arena if no slot is free.
    pub fn take(&mut self, bytes: usize) -> Result<(ArenaSlot, Option<NewArena>)> {
        self.take_or_make(bytes)
            .map_err(|source| Error::memory(bytes, source))
    }

    fn take_or_make(&mut self, bytes: usize) -> std::io::Result<(ArenaSlot, Option<NewArena>)> {
        let now = Instant::now();
        let size = round(bytes).ok_or(ErrorKind::OutOfMemory)?;
        let arenas = self.by_size.entry(size).or_default();
        for number in arenas.iter() {
            let Some(Tracked { arena, taken }) = self.all.get_mut(number) else {
                continue;
            };
            for (slot, taken) in taken.iter_mut().enumerate() {
                if let Some(slot) = ArenaSlot::take(arena, slot, bytes) {
                    *taken = Some(now);
                    return Ok((slot, None));
                }
            }
        }
        let slots = (ARENA / size).clamp(1, MOST_SLOTS);
        let number = self.next;
        self.next = number.checked_add(1).ok_or(ErrorKind::OutOfMemory)?;
        let (arena, descriptor) = Arena::create(number, size, slots)?;
        let arena = Arc::new(arena);
        let slot = ArenaSlot::take(&arena, 0, bytes).ok_or(ErrorKind::OutOfMemory)?;
        let mut taken = vec![None; slots];
        taken[0] = Some(now);
        arenas.push(number);
        let tracked = Tracked {
            arena: Arc::clone(&arena),
            taken,
        };
        self.all.insert(number, tracked);
        Ok((slot, Some((arena, descriptor))))
    }

    /// Adds a share for `len` bytes that lie in a slot of this process; None if they do not.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        let share = |tracked: &Tracked| ArenaSlot::share(&tracked.arena, address, len);
        self.all.values().find_map(share)
    }

    /// Calls [`Self::trim`], at most once per `idle`.
    pub fn trim_if_due(&mut self, idle: Duration) -> Trimmed {
        let now = Instant::now();
        if self
            .last_trim
            .is_some_and(|last_trim| now.duration_since(last_trim) < idle)
        {
            return Trimmed::default();
        }
        self.last_trim = Some(now);
        self.trim(idle)
    }

    /// Gives free memory back to the system that was last taken at least `idle` ago.
    pub fn trim(&mut self, idle: Duration) -> Trimmed {
        let now = Instant::now();
        let is_idle = |taken: Instant| now.duration_since(taken) >= idle;
        if FREES_SINGLE_PAGES {
            self.trim_slots(is_idle)
        } else {
            self.trim_arenas(is_idle)
        }
    }

    /// Frees the pages of idle slots.
    fn trim_slots(&mut self, is_idle: impl Fn(Instant) -> bool) -> Trimmed {
        let mut trimmed = Trimmed::default();
        for Tracked { arena, taken } in self.all.values_mut() {
            for (slot, taken) in taken.iter_mut().enumerate() {
                if taken.is_some_and(&is_idle) && arena.free_pages(slot) {
                    *taken = None;
                    trimmed.bytes += arena.slot_bytes();
                }
            }
        }
        trimmed
    }

    /// Unmaps arenas whose slots are all free. Only this process takes slots, so they stay free.
    fn trim_arenas(&mut self, is_idle: impl Fn(Instant) -> bool) -> Trimmed {
        let mut trimmed = Trimmed::default();
        self.all.retain(|&number, Tracked { arena, taken }| {
            let stays = taken.iter().flatten().any(|&taken| !is_idle(taken)) || arena.held() > 0;
            if !stays {
                trimmed.bytes += taken.iter().flatten().count() * arena.slot_bytes();
                trimmed.unmapped.push(number);
            }
            stays
        });
        self.by_size.retain(|_, numbers| {
            numbers.retain(|number| self.all.contains_key(number));
            !numbers.is_empty()
        });
        trimmed
    }
}

/// Rounds up to a slot size, of which there are four between two powers of two.
fn round(bytes: usize) -> Option<usize> {
    let step = bytes.max(2) - 1;
    let step = (1_usize << step.ilog2()) / 4;
    bytes.max(1).checked_next_multiple_of(step.max(PAGE))
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::memory::Owner;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_fifth_or_a_page_is_wasted_at_most(bytes in 1_usize..1 << 40) {
            let size = round(bytes).unwrap();
            prop_assert!(size >= bytes);
            prop_assert!(size - bytes < PAGE || (size - bytes) * 5 <= size);
            prop_assert_eq!(round(size), Some(size));
        }
    }

    #[test]
    fn slots_are_reused() {
        let mut arenas = Arenas::default();
        let (first, fresh) = arenas.take(100_000).unwrap();
        assert!(fresh.is_some());
        let (second, fresh) = arenas.take(99_000).unwrap();
        assert!(fresh.is_none());
        assert_eq!((first.location().1, second.location().1), (0, 1));
        drop(first);
        let (again, _) = arenas.take(100_000).unwrap();
        assert_eq!(again.location(), (0, 0, 0));
    }

    #[test]
    fn large_slots_have_an_arena_each() {
        let mut arenas = Arenas::default();
        let slots: Vec<_> = (0..3).map(|_| arenas.take(5 << 20).unwrap()).collect();
        assert!(slots.iter().all(|(_, fresh)| fresh.is_some()));
        assert!(arenas.take(usize::MAX).is_err());
    }

    #[test]
    fn idle_memory_is_given_back() {
        let mut arenas = Arenas::default();
        let (kept, _) = arenas.take(10_000).unwrap();
        let (mut dropped, _) = arenas.take(10_000).unwrap();
        assert!(arenas.share(dropped.as_mut_ptr().addr(), 10).is_some());
        assert!(arenas.share(8, 10).is_none());
        drop(dropped);
        assert_eq!(arenas.trim(Duration::from_secs(60)), Trimmed::default());
        let pages = arenas.trim(Duration::ZERO);
        assert!(pages.unmapped.is_empty());
        assert_eq!(pages.bytes, if FREES_SINGLE_PAGES { 12_288 } else { 0 });
        drop(kept);
        let rest = arenas.trim(Duration::ZERO);
        assert_eq!(pages.bytes + rest.bytes, 2 * 12_288);
        assert_eq!(rest.unmapped.is_empty(), FREES_SINGLE_PAGES);
        assert_eq!(arenas.trim(Duration::ZERO), Trimmed::default());
    }

    #[test]
    fn trims_are_at_least_so_far_apart() {
        let mut arenas = Arenas::default();
        drop(arenas.take(10_000).unwrap());
        assert_eq!(arenas.trim_if_due(Duration::from_secs(60)).bytes, 0);
        assert_eq!(arenas.trim_if_due(Duration::from_secs(60)).bytes, 0);
        assert_eq!(arenas.trim(Duration::ZERO).bytes, 12_288);
        drop(arenas.take(10_000).unwrap());
        assert_eq!(arenas.trim_if_due(Duration::ZERO).bytes, 12_288);
        assert_eq!(arenas.trim(Duration::ZERO).bytes, 0);
    }

    #[test]
    fn no_number_is_used_twice() {
        let mut arenas = Arenas::default();
        let mut numbers = Vec::new();
        for _ in 0..3 {
            let (slot, fresh) = arenas.take(10_000).unwrap();
            numbers.extend(fresh.map(|(arena, _)| arena.number()));
            drop(slot);
            let unmapped = arenas.trim(Duration::ZERO).unmapped;
            assert!(unmapped.iter().all(|number| numbers.contains(number)));
            assert_eq!(unmapped.len(), usize::from(!FREES_SINGLE_PAGES));
        }
        let expected: &[u32] = if FREES_SINGLE_PAGES { &[0] } else { &[0, 1, 2] };
        assert_eq!(numbers, expected);
    }
}
