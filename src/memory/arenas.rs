//! The arenas of one worker process, by the size of their slots.
//!
//! Owns which slot a worker writes next, and when the pages of slots that it no longer needs go back to
//! the system. Refuses to send anything: a new arena's descriptor is the caller's. Invariant: an arena
//! lives as long as its worker, so that the parent's mapping of it stays true.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::arena::{Arena, ArenaSlot, MOST_SLOTS};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// Slots are multiples of this, in bytes, so that each has pages of its own.
const PAGE: usize = 4096;

/// Slots of less share an arena of about this many bytes: mappings of a process are counted.
const ARENA: usize = 4 << 20;

/// The arenas of a worker.
#[derive(Debug, Default)]
pub struct Arenas {
    all: Vec<Tracked>,
    by_size: HashMap<usize, Vec<usize>>,
    tidied: Option<Instant>,
}

/// An arena, and when each of its slots was taken last; None where it has no pages.
#[derive(Debug)]
struct Tracked {
    arena: Arc<Arena>,
    taken: Vec<Option<Instant>>,
}

/// A new arena, and the descriptor that the other process is to have.
pub type Fresh = (Arc<Arena>, OwnedFd);

impl Arenas {
    /// Takes a slot for `bytes` bytes, in a new arena if there is none.
    pub fn take(&mut self, bytes: usize) -> Result<(ArenaSlot, Option<Fresh>)> {
        self.take_at(bytes, Instant::now())
            .map_err(|source| Error::Memory { bytes, source })
    }

    fn take_at(
        &mut self,
        bytes: usize,
        now: Instant,
    ) -> std::io::Result<(ArenaSlot, Option<Fresh>)> {
        let size = round(bytes).ok_or(ErrorKind::OutOfMemory)?;
        let arenas = self.by_size.entry(size).or_default();
        for &place in arenas.iter() {
            let Tracked { arena, taken } = &mut self.all[place];
            for (slot, taken) in taken.iter_mut().enumerate() {
                if let Some(slot) = ArenaSlot::take(arena, slot, bytes) {
                    *taken = Some(now);
                    return Ok((slot, None));
                }
            }
        }
        let slots = (ARENA / size).clamp(1, MOST_SLOTS);
        let number = u32::try_from(self.all.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        let (arena, descriptor) = Arena::create(number, size, slots)?;
        let arena = Arc::new(arena);
        let slot = ArenaSlot::take(&arena, 0, bytes).ok_or(ErrorKind::OutOfMemory)?;
        let mut taken = vec![None; slots];
        taken[0] = Some(now);
        arenas.push(self.all.len());
        self.all.push(Tracked {
            arena: Arc::clone(&arena),
            taken,
        });
        Ok((slot, Some((arena, descriptor))))
    }

    /// Finds the place of `len` bytes that lie in a slot of this process; None if they do not.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        let share = |tracked: &Tracked| ArenaSlot::share(&tracked.arena, address, len);
        self.all.iter().find_map(share)
    }

    /// Does as [`Self::trim`], once in so long at most: for whoever is busy.
    pub fn tidy(&mut self, idle: Duration) {
        let now = Instant::now();
        if self
            .tidied
            .is_none_or(|tidied| now.duration_since(tidied) >= idle)
        {
            self.tidied = Some(now);
            self.trim(idle);
        }
    }

    /// Gives the pages of slots that are free, and were taken last before `idle`, back to the system;
    /// returns their bytes.
    pub fn trim(&mut self, idle: Duration) -> usize {
        let now = Instant::now();
        let mut released = 0;
        for Tracked { arena, taken } in &mut self.all {
            for (slot, taken) in taken.iter_mut().enumerate() {
                let old = taken.is_some_and(|taken| now.duration_since(taken) >= idle);
                if old && arena.release(slot) {
                    *taken = None;
                    released += arena.slot_bytes();
                }
            }
        }
        released
    }
}

/// Rounds up to a size of slots, of which there are four between two powers of two.
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
        assert_eq!((first.place().1, second.place().1), (0, 1));
        drop(first);
        let (again, _) = arenas.take(100_000).unwrap();
        assert_eq!(again.place(), (0, 0, 0));
    }

    #[test]
    fn large_slots_have_an_arena_each() {
        let mut arenas = Arenas::default();
        let slots: Vec<_> = (0..3).map(|_| arenas.take(5 << 20).unwrap()).collect();
        assert!(slots.iter().all(|(_, fresh)| fresh.is_some()));
        assert!(arenas.take(usize::MAX).is_err());
    }

    #[test]
    fn what_is_idle_has_no_pages() {
        let mut arenas = Arenas::default();
        let (kept, _) = arenas.take(10_000).unwrap();
        let (mut dropped, _) = arenas.take(10_000).unwrap();
        assert!(arenas.share(dropped.as_mut_ptr().addr(), 10).is_some());
        assert!(arenas.share(8, 10).is_none());
        drop(dropped);
        assert_eq!(arenas.trim(Duration::from_secs(60)), 0);
        assert_eq!(arenas.trim(Duration::ZERO), 12_288);
        assert_eq!(arenas.trim(Duration::ZERO), 0);
        drop(kept);
        assert_eq!(arenas.trim(Duration::ZERO), 12_288);
    }

    #[test]
    fn who_is_busy_tidies_seldom() {
        let mut arenas = Arenas::default();
        drop(arenas.take(10_000).unwrap());
        arenas.tidy(Duration::from_secs(60));
        arenas.tidy(Duration::from_secs(60));
        assert_eq!(arenas.trim(Duration::ZERO), 12_288);
        drop(arenas.take(10_000).unwrap());
        arenas.tidy(Duration::ZERO);
        assert_eq!(arenas.trim(Duration::ZERO), 0);
    }
}
