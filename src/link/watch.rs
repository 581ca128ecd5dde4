//! A thread that ends a worker whose parent is gone.
//!
//! Owns nothing but its own copy of the worker's end of the link. A parent that was killed cannot say
//! anything: its end of the socket is closed by the system, unless a process that it forked has it still;
//! and its children are given another parent. Refuses to ask Python, which may be busy for ever.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Signal, getpid, getppid, kill_process};

use super::failed;
use super::socket::{Socket, wait_for_any};
use crate::error::Result;

/// Longest time between two looks.
const SLICE: Duration = Duration::from_millis(400);

/// Starts the thread, which has a copy of the worker's `end`.
///
/// # Errors
///
/// No descriptor or no thread is to be had.
pub fn watch(end: BorrowedFd<'_>) -> Result<()> {
    let socket = Socket::new(
        end.try_clone_to_owned()
            .map_err(|e| failed("watch over", e))?,
    );
    let parent = getppid();
    let thread = thread::Builder::new().name("fastload-watch".to_owned());
    let watching = move || {
        loop {
            // not RDHUP: a parent that has finished lets its workers come to their end
            let seen = polled(&socket);
            if seen.intersects(PollFlags::HUP | PollFlags::ERR) || getppid() != parent {
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

/// Returns what has become of the other end, after a while.
fn polled(socket: &Socket) -> PollFlags {
    let mut polled = [PollFd::new(socket, PollFlags::empty())];
    // an error would be no reason to end
    let _ = wait_for_any(&mut polled, SLICE);
    polled[0].revents()
}
