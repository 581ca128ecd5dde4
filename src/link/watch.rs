//! A thread that ends a worker whose parent is gone.
//!
//! Owns nothing but its own copy of the worker's end of the link. A parent that was killed cannot say
//! anything: its end of the socket is closed by the system, unless a process that it forked has it still;
//! and its children are given another parent. Refuses to ask Python, which may be busy for ever.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::failed;
use super::wire::Wire;
use crate::error::Result;

/// Longest time between two looks.
const SLICE: Duration = Duration::from_millis(400);

/// Starts the thread, which has a copy of the worker's `end`.
///
/// # Errors
///
/// No descriptor or no thread is to be had.
pub fn watch(end: BorrowedFd<'_>) -> Result<()> {
    let end = end
        .try_clone_to_owned()
        .map_err(|e| failed("watch over", e))?;
    let wire = Wire::new(end);
    let parent = getppid();
    let thread = thread::Builder::new().name("fastload-watch".to_owned());
    let watching = move || {
        loop {
            // a parent that has finished lets its workers come to their end; an error would be no reason for one
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
