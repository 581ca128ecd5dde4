//! The process-wide pool that batches are leased from.
//!
//! Owns the idle memory of the process and the thread that frees it: `fastload-trim` lives only while
//! something is idle, and unmaps blocks that were not reused for two seconds. Refuses to bound anything:
//! users own what they hold, and the submission of tasks bounds what is prefetched. Invariant: no lock of the
//! pool is ever taken in a forked child: the child has a pool of its own, and leaks what it inherited.

use std::io::ErrorKind;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::block::{Block, MAPPED, SMALLEST, round};
use super::destination::Lease;
use super::free_list::{FreeList, Put, Watch};
use crate::error::{Error, Result};
use crate::fork::{self, Renewed};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

/// Time for which a block stays idle before it is freed.
const LIFETIME: Duration = Duration::from_secs(2);

static POOL: Renewed<Pool> = Renewed::new(Pool::new);

struct Pool {
    birth: u64,
    idle: FreeList<Block>,
    leased_bytes: AtomicUsize,
    mapped_blocks: AtomicUsize,
    /// Held while the trimming thread is started or stopped; that thread never takes it.
    trimmer: Mutex<Option<JoinHandle<()>>>,
}

/// The size of the pool, in bytes of address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// In leases now, rounded up to their size classes.
    pub leased_bytes: usize,
    /// Kept for reuse.
    pub idle_bytes: usize,
    /// Number of blocks mapped so far, because none could be reused.
    pub mapped_blocks: usize,
}

/// Leases `bytes` bytes with arbitrary, initialised values.
pub fn lease(bytes: usize) -> Result<Lease> {
    let pool = pool();
    let block = pool
        .take(bytes)
        .map_err(|source| Error::memory(bytes, source))?;
    Ok(Lease::new(block, bytes, pool.birth))
}

/// Takes back the block of a lease of this process.
pub(super) fn give_back(block: Block) {
    pool().give_back(block);
}

/// Frees all idle memory, on the caller's thread; returns its bytes.
pub fn trim() -> usize {
    pool().idle.drain().iter().map(Block::capacity).sum()
}

/// Returns the sizes of leased and of idle memory.
pub fn stats() -> Stats {
    let pool = pool();
    Stats {
        leased_bytes: pool.leased_bytes.load(Ordering::Relaxed),
        idle_bytes: pool.idle.idle_bytes(),
        mapped_blocks: pool.mapped_blocks.load(Ordering::Relaxed),
    }
}

/// Ends the trimming thread, waits until it is gone, and frees the blocks that it watched.
///
/// Called before a fork, so that the process has fewer threads. The next block that becomes idle starts the
/// thread again.
pub fn stop_trimming() {
    pool().stop_trimming();
}

/// Ends the trimming thread for good: from now on, memory is freed when it is dropped.
///
/// Called when the interpreter exits: tensors may still be freed afterwards, but no thread can be started.
pub fn retire() {
    let pool = pool();
    pool.idle.retire();
    pool.stop_trimming();
}

/// Returns the pool of this process; makes it on first use, and anew in every forked child.
fn pool() -> &'static Pool {
    POOL.get()
}

impl Pool {
    fn new() -> Self {
        Self {
            birth: fork::generation(),
            idle: FreeList::new(),
            leased_bytes: AtomicUsize::new(0),
            mapped_blocks: AtomicUsize::new(0),
            trimmer: Mutex::new(None),
        }
    }

    fn take(&self, bytes: usize) -> std::io::Result<Block> {
        let block = if bytes < SMALLEST {
            Block::heap(bytes)?
        } else {
            let class = round(bytes).ok_or(ErrorKind::OutOfMemory)?;
            match self.idle.take(class) {
                Some(block) => block,
                None if class < MAPPED => Block::heap(class)?,
                None => self.map(class, bytes)?,
            }
        };
        self.leased_bytes
            .fetch_add(block.capacity(), Ordering::Relaxed);
        Ok(block)
    }

    /// Maps a new block of a class for `bytes` bytes; if the system refuses, frees the idle blocks and tries again.
    fn map(&self, class: usize, bytes: usize) -> std::io::Result<Block> {
        self.mapped_blocks.fetch_add(1, Ordering::Relaxed);
        Block::map(class, bytes).or_else(|_| {
            drop(self.idle.drain());
            Block::map(class, bytes)
        })
    }

    fn give_back(&'static self, block: Block) {
        self.leased_bytes
            .fetch_sub(block.capacity(), Ordering::Relaxed);
        if block.capacity() < SMALLEST {
            return;
        }
        match self.idle.put(block.capacity(), block, Instant::now()) {
            Put::Kept => {}
            Put::Unwatched => self.start_trimming(),
            Put::Refused(block) => drop(block),
        }
    }

    fn start_trimming(&'static self) {
        let mut trimmer = lock(&self.trimmer);
        if !self.idle.watch() {
            return;
        }
        let thread = thread::Builder::new().name("fastload-trim".to_owned());
        match thread.spawn(|| self.keep_trimming()) {
            // Drops the handle of a thread that ended by itself.
            Ok(handle) => *trimmer = Some(handle),
            // Without a thread the blocks stay; the next block that becomes idle tries again.
            Err(_) => self.idle.unwatch(),
        }
    }

    fn keep_trimming(&self) {
        loop {
            match self.idle.step(Instant::now(), LIFETIME) {
                Watch::Expired(blocks) => drop(blocks),
                Watch::Rest(time) => self.idle.rest(time),
                Watch::Over => return,
            }
        }
    }

    fn stop_trimming(&self) {
        let mut trimmer = lock(&self.trimmer);
        self.idle.stop();
        if let Some(thread) = trimmer.take() {
            // Its closure cannot panic, so there is no error to report.
            let _ = thread.join();
        }
        self.idle.resume();
        drop(self.idle.drain());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Makes a pool that lives as long as the process, reachable for leak checkers.
    fn new_pool() -> &'static Pool {
        static POOLS: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());
        let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
        lock(&POOLS).push(pool);
        pool
    }

    #[test]
    fn a_block_is_reused_within_its_class() {
        for bytes in [100_000, 5_000] {
            let pool = new_pool();
            let block = pool.take(bytes).unwrap();
            let (start, class) = (block.start(), block.capacity());
            assert_eq!(pool.leased_bytes.load(Ordering::Relaxed), class);
            pool.give_back(block);
            assert_eq!(pool.leased_bytes.load(Ordering::Relaxed), 0);
            assert_eq!(pool.idle.idle_bytes(), class);
            let larger = pool.take(3 * class).unwrap();
            assert_eq!(pool.idle.idle_bytes(), class);
            let again = pool.take(class).unwrap();
            assert_eq!(again.start(), start);
            pool.give_back(larger);
            pool.give_back(again);
            pool.stop_trimming();
            assert_eq!(pool.idle.idle_bytes(), 0);
        }
    }

    #[test]
    fn the_trimming_thread_lives_while_something_is_idle() {
        let pool = new_pool();
        let is_running = || {
            lock(&pool.trimmer)
                .as_ref()
                .is_some_and(|t| !t.is_finished())
        };
        pool.give_back(pool.take(10).unwrap());
        assert!(!is_running());
        pool.give_back(pool.take(100_000).unwrap());
        assert!(is_running());
        pool.stop_trimming();
        assert!(!is_running());
        pool.give_back(pool.take(100_000).unwrap());
        assert!(is_running());
        pool.idle.retire();
        pool.stop_trimming();
        pool.give_back(pool.take(100_000).unwrap());
        assert!(!is_running());
        assert_eq!(pool.idle.idle_bytes(), 0);
    }

    #[test]
    fn a_lease_is_aligned_and_of_the_size_asked_for() {
        for bytes in [0, 1, 63, 65_535, 65_536, 65_537, (2 << 20) + 1] {
            let mut lease = lease(bytes).unwrap();
            assert_eq!(lease.len(), bytes);
            assert_eq!(lease.as_ptr().addr() % 64, 0);
            lease.fill(7);
            assert!(lease.first().is_none_or(|&byte| byte == 7));
            assert!(lease.last().is_none_or(|&byte| byte == 7));
        }
    }

    #[test]
    fn large_blocks_start_at_a_huge_page() {
        let block = lease(3 << 20).unwrap();
        assert_eq!(block.as_ptr().addr() % (2 << 20), 0);
    }

    #[cfg(not(miri))] // Miri's own memory would run out first
    #[test]
    fn a_failed_allocation_is_an_error() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
            assert!(
                matches!(lease(bytes), Err(Error::Memory { bytes: asked, .. }) if asked == bytes)
            );
        }
    }

    #[test]
    fn leases_are_dropped_on_any_thread() {
        let leases: Vec<_> = (0..8).map(|_| lease(100_000).unwrap()).collect();
        std::thread::scope(|scope| {
            for mut lease in leases {
                scope.spawn(move || lease[99_999] = 1);
            }
        });
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_child_leaks_what_it_inherited_and_leases_its_own() {
        let inherited = lease(100_000).unwrap();
        let seen = fork::tests::in_child(|| {
            drop(inherited);
            let fresh = stats()
                == Stats {
                    leased_bytes: 0,
                    idle_bytes: 0,
                    mapped_blocks: 0,
                };
            drop(lease(100_000));
            let reused = stats()
                == Stats {
                    leased_bytes: 0,
                    idle_bytes: 106_496,
                    mapped_blocks: 1,
                };
            u8::from(fresh) + 2 * u8::from(reused)
        });
        assert_eq!(seen, Some(3));
    }
}
