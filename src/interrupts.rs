//! Holds Ctrl-C back while a step of an iterator is half done, or a worker is forked.
//!
//! Python raises `KeyboardInterrupt` between any two instructions of the main thread. In the middle of a step
//! that would lose the batch that was just taken from a worker. So the system's handler of SIGINT is wrapped:
//! while the main thread is within [`hold`], an interrupt is only noted. Whoever waits there calls [`release_one`],
//! with nothing in hand; what came otherwise is sent again once the step is over. At all other times, in
//! other threads and in forked children, the wrapped handler does what it did.
//!
//! A second interrupt, a second later or more, is not held: whatever blocks within the step is then interrupted
//! itself, and the step is *torn*.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use crate::fork::{generation, inherited};

/// Time after which a further interrupt is not held back.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time after a step until an interrupt that came within it is sent again: the caller has its batch by then.
const AFTER: Duration = Duration::from_millis(1);

/// The generation of the process whose main thread is within a step, plus 1; 0 outside. A forked child
/// is in another generation.
static HELD: AtomicU64 = AtomicU64::new(0);
/// When the interrupt that is held back came, in nanoseconds of the monotonic clock; 0 for none.
static CAME_NS: AtomicU64 = AtomicU64::new(0);
/// True once an interrupt was let through in the middle of a step.
static TORN: AtomicBool = AtomicBool::new(false);
/// The wrapped handler. Never freed: a signal may come at any time.
static WRAPPED: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// Wraps the handler that SIGINT has now, unless it is wrapped already or the system's own.
pub fn watch() {
    // SAFETY: all zeros is a valid `sigaction`.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it only writes to `now`.
    if unsafe { libc::sigaction(libc::SIGINT, std::ptr::null(), &raw mut now) } != 0 {
        return;
    }
    let handler = now.sa_sigaction;
    let is_function = handler != libc::SIG_DFL && handler != libc::SIG_IGN;
    if !is_function || handler == on_interrupt as *const () as usize {
        return;
    }
    // SAFETY: null, or a box that is never freed.
    let known = unsafe { WRAPPED.load(Ordering::Acquire).as_ref() };
    if known.is_none_or(|old| (old.sa_sigaction, old.sa_flags) != (handler, now.sa_flags)) {
        WRAPPED.store(Box::into_raw(Box::new(now)), Ordering::Release);
    }
    now.sa_sigaction = on_interrupt as *const () as usize;
    now.sa_flags |= libc::SA_SIGINFO;
    // SAFETY: the handler only does what a handler may, and lives as long as the process.
    unsafe { libc::sigaction(libc::SIGINT, &raw const now, std::ptr::null_mut()) };
}

extern "C" fn on_interrupt(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if is_held(HELD.load(Ordering::SeqCst)) {
        let now_ns = monotonic_ns();
        let first = CAME_NS.compare_exchange(0, now_ns, Ordering::SeqCst, Ordering::SeqCst);
        match first {
            Ok(_) => return,
            Err(came_ns) if Duration::from_nanos(now_ns.saturating_sub(came_ns)) < PATIENCE => {
                return;
            }
            Err(_) => {
                CAME_NS.store(0, Ordering::SeqCst); // both are one
                TORN.store(true, Ordering::SeqCst);
            }
        }
    }
    // SAFETY: `watch` has stored a handler before it installed this one, in a box that is never freed.
    let Some(wrapped) = (unsafe { WRAPPED.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    if wrapped.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: without the flag it is a function of this type.
        let plain: extern "C" fn(c_int) = unsafe { std::mem::transmute(wrapped.sa_sigaction) };
        plain(signal);
    } else {
        // SAFETY: with the flag it is a function of this type.
        let full: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(wrapped.sa_sigaction) };
        full(signal, info, context);
    }
}

/// Returns true for a value of `HELD` that this process has set.
fn is_held(value: u64) -> bool {
    value != 0 && !inherited(value - 1)
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a live value; the call may be made in a signal handler.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).unsigned_abs()
}

/// The stretch until this is dropped; in threads other than the main one it does nothing.
#[derive(Debug)]
#[must_use]
pub struct Hold(Option<u64>);

/// Holds interrupts back until the value is dropped.
pub fn hold() -> Hold {
    if !is_main() {
        return Hold(None);
    }
    forget_inherited();
    let before = HELD.swap(generation() + 1, Ordering::SeqCst);
    if before == 0 && TORN.load(Ordering::SeqCst) {
        TORN.store(false, Ordering::SeqCst); // by whoever held interrupts last
    }
    Hold(Some(before))
}

/// Forgets, in a forked child, an interrupt that its parent held back: it was sent to the parent.
fn forget_inherited() {
    let held = HELD.load(Ordering::SeqCst);
    if held != 0 && !is_held(held) {
        CAME_NS.store(0, Ordering::SeqCst);
        HELD.store(0, Ordering::SeqCst);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(before) = self.0 else { return };
        HELD.store(before, Ordering::SeqCst);
        // each step ends here: a load takes a tenth of what a swap takes
        let came = CAME_NS.load(Ordering::SeqCst) != 0 && !is_held(before);
        if came && CAME_NS.swap(0, Ordering::SeqCst) != 0 {
            send_again();
        }
    }
}

/// Calls a function that interrupts may reach, within a step or outside.
pub fn interruptibly<T>(function: impl FnOnce() -> T) -> T {
    if !is_main() {
        return function();
    }
    forget_inherited();
    let before = HELD.swap(0, Ordering::SeqCst);
    if CAME_NS.swap(0, Ordering::SeqCst) != 0 {
        raise();
    }
    let made = function();
    HELD.store(before, Ordering::SeqCst);
    made
}

/// Hands an interrupt that was held back to the wrapped handler; to be called where nothing is in hand.
pub fn release_one() {
    if is_main() && CAME_NS.load(Ordering::SeqCst) != 0 {
        interruptibly(|| ());
    }
}

/// Returns true, once, if an interrupt was let through in the middle of a step.
pub fn is_torn() -> bool {
    TORN.swap(false, Ordering::SeqCst)
}

fn raise() {
    // SAFETY: it has a handler: one has noted it. The system calls that before this returns.
    unsafe { libc::raise(libc::SIGINT) };
}

/// Sends the interrupt again when the caller has its batch; at once if there is no thread to wait in.
fn send_again() {
    let send = || {
        std::thread::sleep(AFTER);
        // SAFETY: it only reads.
        let this = unsafe { libc::getpid() };
        // SAFETY: sends a signal to this process, as the terminal did.
        unsafe { libc::kill(this, libc::SIGINT) };
    };
    if std::thread::Builder::new().spawn(send).is_err() {
        raise();
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn find_main() -> bool {
    // SAFETY: it only reads.
    let (thread, process) = (unsafe { libc::gettid() }, unsafe { libc::getpid() });
    thread == process
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn find_main() -> bool {
    // SAFETY: it only reads.
    unsafe { libc::pthread_main_np() == 1 }
}

/// Returns true in the main thread, where Python calls its handlers.
fn is_main() -> bool {
    thread_local!(static IS_MAIN: bool = find_main());
    IS_MAIN.with(|is_main| *is_main)
}
