//! Tells a forked child from its parent.
//!
//! Owns one number, the generation: 0 in the process that loaded this library, one more in every child that
//! `fork` makes. Anything that holds locks, threads or memory remembers the generation in which it was made.
//! In a later one it is *inherited*: its threads are gone, its locks may be held by threads that do not
//! exist, and its descriptors may refer to other files.
//!
//! Invariant: no lock is shared through a fork. Every lock that outlives a call lies in one of two wrappers,
//! which compare generations before the lock is touched: [`Renewed`] makes its value anew in a child,
//! [`Uninherited`] has none there. Locks of other libraries, which cannot be wrapped, are only taken within
//! [`undivided`]; a fork waits until no thread is inside.
//!
//! Exempt are locks that are only held by threads attached to the interpreter, which run no Python code
//! meanwhile: a thread that forks from Python is attached itself.
//!
//! Refuses to do anything else at a fork: the handlers only count, and wait for [`undivided`] work.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

pub use gate::undivided;

use crate::error::{Error, Result};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static HANDLER: Once = Once::new();

/// Returns the generation of this process: 0 where the library was loaded, one more per fork.
///
/// The first call installs the fork handlers. Make it while no other thread can fork (as when the
/// module is imported): forks before it are not counted.
pub fn generation() -> u64 {
    HANDLER.call_once(install);
    GENERATION.load(Ordering::Relaxed)
}

/// Returns true if a value made in generation `birth` was inherited through a fork.
pub fn inherited(birth: u64) -> bool {
    // No `call_once` here: the caller got `birth` from `generation`.
    GENERATION.load(Ordering::Relaxed) != birth
}

fn install() {
    extern "C" fn prepare() {
        gate::close();
    }
    extern "C" fn parent() {
        gate::open();
    }
    extern "C" fn child() {
        gate::renew();
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handlers live as long as this library. In the child, which has one thread and
    // unknown locks, only atomics are written. A failure (no memory) leaves forks uncounted, as on
    // systems that have none.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// A value that a forked child makes anew.
#[derive(Debug)]
pub struct Renewed<T: Send + Sync> {
    /// The latest value, and the generation in which it was made. Freed only with this.
    current: AtomicPtr<(u64, T)>,
    make: fn() -> T,
}

impl<T: Send + Sync> Renewed<T> {
    /// Makes the value on first use.
    pub const fn new(make: fn() -> T) -> Renewed<T> {
        Renewed {
            current: AtomicPtr::new(std::ptr::null_mut()),
            make,
        }
    }

    /// Returns the value of this process. A child leaks its parent's, untouched.
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
                // SAFETY: `fresh` was made above, and no other thread has seen its address.
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
            // SAFETY: it comes from `Box::into_raw`, and `&mut self` excludes every borrow.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

/// A value that a forked child does not inherit: it is leaked there, untouched.
#[derive(Debug)]
pub struct Uninherited<T> {
    value: ManuallyDrop<T>,
    birth: u64,
}

impl<T> Uninherited<T> {
    /// Wraps a value of this process.
    pub fn new(value: T) -> Uninherited<T> {
        Uninherited {
            value: ManuallyDrop::new(value),
            birth: generation(),
        }
    }

    /// Returns the value; None in a forked child.
    pub fn get(&self) -> Option<&T> {
        (!inherited(self.birth)).then_some(&*self.value)
    }

    /// Returns the value; an error in a forked child.
    pub fn here(&self) -> Result<&T> {
        self.get().ok_or(Error::Inherited)
    }

    /// Returns the value, in a forked child the parent's. A child may only `try_lock` its locks.
    pub fn even_if_inherited(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Uninherited<T> {
    fn drop(&mut self) {
        if !inherited(self.birth) {
            // SAFETY: it is not used again: this is drop.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Lets forks wait for work that a fork must not interrupt.
mod gate {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Longest wait of a fork: longer than the largest picture takes. After it the fork goes on regardless.
    const LIMIT: Duration = Duration::from_secs(10);
    /// Time between two checks.
    const RECHECK: Duration = Duration::from_micros(20);

    /// Threads inside.
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    /// Forks that wait, or are in progress.
    static FORKS: AtomicUsize = AtomicUsize::new(0);

    struct Inside;

    impl Inside {
        fn enter() -> Inside {
            loop {
                // Sequentially consistent, as in `close`: of a thread and a fork that arrive at once, at
                // least one sees the other.
                INSIDE.fetch_add(1, Ordering::SeqCst);
                if FORKS.load(Ordering::SeqCst) == 0 {
                    return Inside;
                }
                INSIDE.fetch_sub(1, Ordering::Release);
                while FORKS.load(Ordering::Relaxed) > 0 {
                    std::thread::sleep(RECHECK);
                }
            }
        }
    }

    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.fetch_sub(1, Ordering::Release);
        }
    }

    /// Runs work during which no fork happens, because it takes locks of other libraries, which a child
    /// would inherit locked. The work must be short, wait for no other thread, and not be nested.
    pub fn undivided<T>(work: impl FnOnce() -> T) -> T {
        let inside = Inside::enter();
        let made = work();
        drop(inside);
        made
    }

    /// Stops threads from entering, and waits until none is inside.
    pub(super) fn close() {
        FORKS.fetch_add(1, Ordering::SeqCst);
        let begun = std::time::Instant::now();
        while INSIDE.load(Ordering::SeqCst) > 0 && begun.elapsed() < LIMIT {
            std::thread::sleep(RECHECK);
        }
    }

    /// Lets threads enter again, unless another thread forks.
    pub(super) fn open() {
        FORKS.fetch_sub(1, Ordering::Release);
    }

    /// Starts from zero, without the parent's threads.
    pub(super) fn renew() {
        INSIDE.store(0, Ordering::Relaxed);
        FORKS.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom), not(miri)))]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    /// Runs `body` in a forked child, where an alarm ends what hangs; returns the exit code, None for a
    /// signal.
    pub(crate) fn in_child(body: impl FnOnce() -> u8) -> Option<i32> {
        const ALARM_S: u32 = 20;
        // Installs the handlers, which importing the module does elsewhere. A thread that another test has
        // just started may be installing them: a child of that moment would wait for it forever.
        generation();
        // SAFETY: the child runs only `body`, which must work there, and exits.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "no process");
        if pid == 0 {
            // SAFETY: only asks for a signal.
            unsafe { libc::alarm(ALARM_S) };
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(code.map_or(255, i32::from)) };
        }
        let mut status = 0;
        // SAFETY: `status` is a live int, `pid` our child.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
    }

    #[test]
    fn a_child_makes_its_own_value() {
        let kept = Renewed::new(|| AtomicU64::new(1));
        kept.get().store(2, Ordering::Relaxed);
        assert_eq!(kept.get().load(Ordering::Relaxed), 2);
        let seen = in_child(|| kept.get().load(Ordering::Relaxed) as u8);
        assert_eq!(seen, Some(1));
        assert_eq!(kept.get().load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_child_is_one_generation_later() {
        let birth = generation();
        assert!(!inherited(birth));
        let seen = in_child(|| {
            let grandchild = in_child(|| u8::from(generation() == birth + 2));
            u8::from(inherited(birth) && generation() == birth + 1 && grandchild == Some(1))
        });
        assert_eq!(seen, Some(1));
        assert!(!inherited(birth));
    }

    #[test]
    fn a_child_neither_sees_nor_drops_an_uninherited_value() {
        struct Noisy<'a>(Mutex<()>, &'a AtomicBool);
        impl Drop for Noisy<'_> {
            fn drop(&mut self) {
                drop(self.0.lock());
                self.1.store(true, Ordering::Relaxed);
            }
        }
        let dropped = AtomicBool::new(false);
        let value = Uninherited::new(Noisy(Mutex::new(()), &dropped));
        assert!(value.get().is_some());
        let held = value.even_if_inherited().0.lock();
        let seen = in_child(|| {
            let tried = value.even_if_inherited().0.try_lock().is_err();
            u8::from(tried && value.get().is_none() && !dropped.load(Ordering::Relaxed))
        });
        assert_eq!(seen, Some(1));
        drop(held);
        let mut value = Some(value);
        let seen = in_child(|| {
            drop(value.take());
            u8::from(dropped.load(Ordering::Relaxed))
        });
        assert_eq!(seen, Some(0));
        drop(value);
        assert!(dropped.load(Ordering::Relaxed));
    }

    #[test]
    fn no_fork_interrupts_undivided_work() {
        let (lock, over) = (Mutex::new(()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        undivided(|| {
                            let held = lock.lock();
                            std::thread::sleep(Duration::from_micros(50));
                            drop(held);
                        });
                    }
                });
            }
            for _ in 0..200 {
                let seen = in_child(|| undivided(|| u8::from(lock.try_lock().is_ok())));
                assert_eq!(seen, Some(1));
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(undivided(|| 3), 3);
    }
}
