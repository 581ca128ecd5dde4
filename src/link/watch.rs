//! A thread that kills a worker whose parent is gone.
//!
//! Owns only its copy of the worker's end of the link. A parent that was killed says nothing, but the system
//! closes its end of the socket, unless a process that it forked still has it; and the system gives its
//! children a new parent. The thread polls for both. Refuses to run Python, which may block forever.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::failed;
use super::wire::Wire;
use crate::error::Result;

/// Longest time between two checks.
const SLICE: Duration = Duration::from_millis(400);

/// Starts the thread, with a copy of the worker's `end`.
///
/// # Errors
///
/// The descriptor cannot be copied, or the thread cannot be started.
pub fn watch(end: BorrowedFd<'_>) -> Result<()> {
    let end = end
        .try_clone_to_owned()
        .map_err(|e| failed("watch over", e))?;
    let wire = Wire::new(end);
    let parent = getppid();
    let thread = thread::Builder::new().name("fastload-watch".to_owned());
    let watching = move || {
        loop {
            // A parent that has only finished lets its workers end by themselves, and an error is no reason
            // to kill one.
            let is_closed = wire.is_closed_within(SLICE).unwrap_or(false);
            if is_closed || getppid() != parent {
                let _ = kill_process(getpid(), Signal::KILL);
                return;
            }
        }
    };
    thread
        .spawn(watching)
        .map_err(|e| failed("watch over", e))?;
    Ok(())
}
