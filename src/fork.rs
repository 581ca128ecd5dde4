//! Tells a forked child from its parent.
//!
//! Owns one number, the generation: 0 in the process that loaded this library, one more in every
//! child that `fork` makes. What holds locks, threads or memory remembers the generation it was
//! born in; in a later one it is *inherited*: its threads are gone and its locks may be held by
//! nobody; [`Renewed`] makes it anew. Refuses to do anything else at fork: the handler adds one to an
//! atomic and returns, because only that is safe there.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static HANDLER: Once = Once::new();

/// Returns the generation of this process: 0 where the library was loaded, one more per fork.
///
/// The first call installs the fork handler. Make it while no other thread can fork (as when the
/// module is imported): forks before it are not counted.
pub fn generation() -> u64 {
    if !HANDLER.is_completed() {
        HANDLER.call_once(install);
    }
    GENERATION.load(Ordering::Relaxed)
}

/// Tells whether something born in generation `birth` was inherited through a fork.
pub fn inherited(birth: u64) -> bool {
    generation() != birth
}

#[cfg(unix)]
fn install() {
    extern "C" fn child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: `child` lives as long as this library and only adds to an atomic, which is
    // allowed in a child that has one thread and unknown locks. A failure (no memory) leaves
    // forks uncounted, as on systems that have none.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn install() {}

/// What a forked child makes anew, because its locks may be held by threads that are not there.
#[derive(Debug)]
pub struct Renewed<T: Send + Sync> {
    /// The latest, and the generation that it was born in; never freed before this is.
    current: AtomicPtr<(u64, T)>,
    make: fn() -> T,
}

impl<T: Send + Sync> Renewed<T> {
    /// Makes the first on first use.
    pub fn new(make: fn() -> T) -> Renewed<T> {
        Renewed {
            current: AtomicPtr::new(std::ptr::null_mut()),
            make,
        }
    }

    /// Returns the one of this process. In a child the parent's is leaked, untouched.
    pub fn get(&self) -> &T {
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: a non-null pointer comes from `Box::into_raw` below and lives as long as `self`.
            if let Some((birth, value)) = unsafe { current.as_ref() }
                && !inherited(*birth)
            {
                return value;
            }
            let fresh = Box::into_raw(Box::new((generation(), (self.make)())));
            let order = (Ordering::AcqRel, Ordering::Acquire);
            let swapped = self
                .current
                .compare_exchange(current, fresh, order.0, order.1);
            if swapped.is_err() {
                // SAFETY: `fresh` was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }
}

impl<T: Send + Sync> Drop for Renewed<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: as in `get`.
        if unsafe { current.as_ref() }.is_some_and(|(birth, _)| !inherited(*birth)) {
            // SAFETY: it comes from `Box::into_raw`, and nobody borrows from what is dropped.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

#[cfg(all(test, unix, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_child_makes_its_own() {
        let kept = Renewed::new(|| AtomicU64::new(1));
        kept.get().store(2, Ordering::Relaxed);
        assert_eq!(kept.get().load(Ordering::Relaxed), 2);
        // SAFETY: the child only allocates, reads an atomic and leaves.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let seen = kept.get().load(Ordering::Relaxed);
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(seen as i32) };
        }
        let mut status = 0;
        // SAFETY: `status` is a live int, `pid` our child.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert_eq!(kept.get().load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_child_is_one_generation_further() {
        let birth = generation();
        assert!(!inherited(birth));
        // SAFETY: the child only reads an atomic and leaves.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let seen = i32::from(inherited(birth)) + 2 * i32::from(generation() == birth + 1);
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(seen) };
        }
        assert!(pid > 0);
        let mut status = 0;
        // SAFETY: `status` is a live int, `pid` our child.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 3);
        assert!(!inherited(birth));
    }
}
