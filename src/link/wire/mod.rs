//! The transport of pieces: a pair of connected sockets.
//!
//! Owns the differences between systems, in [`Wire`]: Linux keeps pieces apart itself; elsewhere they are
//! bytes behind a length. Never waits, except for the end of the other process. Invariant: a piece comes
//! whole or not at all, with the descriptor that it was sent with, or none.

#[cfg(memfd)]
mod packets;
#[cfg(not(memfd))]
mod stream;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::sync::atomic::{AtomicU32, Ordering};

#[cfg(memfd)]
pub(super) use packets::{KEEP_SENT_DESCRIPTORS, Wire};
#[cfg(not(memfd))]
pub(super) use stream::{KEEP_SENT_DESCRIPTORS, Wire};

/// Maximum size of a piece, in bytes.
pub(super) const PIECE: usize = 32 << 10;

/// The kind of a piece: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last piece of a message.
    Last,
    /// A piece of a message, with more to follow.
    More,
    /// Describes an arena; its descriptor comes with it.
    Arena,
    /// Acknowledges the oldest descriptor that was not acknowledged yet.
    Received,
    /// Names an arena that its process has unmapped; no slot of it is held.
    Unmapped,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let kinds = [
            Self::Last,
            Self::More,
            Self::Arena,
            Self::Received,
            Self::Unmapped,
        ];
        kinds.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// The outcome of sending a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    /// There is no room now, for the piece or for its rest.
    Full,
    /// The other end is gone.
    Gone,
}

/// The outcome of receiving.
#[derive(Debug)]
pub(super) enum Incoming {
    Piece(Kind, Vec<u8>, Option<OwnedFd>),
    /// Nothing has come yet.
    Nothing,
    /// Nothing will come any more.
    End,
}

/// Sends bytes, with a descriptor, in one call; returns the number of bytes.
fn send_once(
    end: &OwnedFd,
    bytes: &[IoSlice<'_>],
    descriptor: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(end, bytes, &mut control, flags)
}

/// Returns the outcome that an error of [`send_once`] means, if it is not a failure.
fn unsent(error: Errno) -> Result<Sent> {
    match error {
        // TOOMANYREFS: too many descriptors are in flight until the other end reads.
        Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::TOOMANYREFS => Ok(Sent::Full),
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Ok(Sent::Gone),
        error => Err(error),
    }
}

/// Receives bytes in one call; returns their number, and the descriptor that came with them.
fn receive_once(
    end: &OwnedFd,
    into: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(end, &mut [IoSliceMut::new(into)], &mut control, flags)?;
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            descriptor = descriptors.next();
        }
    }
    Ok((received.bytes, descriptor))
}

/// Time for which [`Waiter::wait`] checks before it sleeps. Processes that pass each other small batches then need
/// no wake-ups, each of which takes some 50 us of CPU time.
const SPIN: Duration = Duration::from_micros(50);

/// Waits after which it sleeps at once: nothing came in time while it spun.
const PATIENCE: u32 = 8;

/// Of later waits, it spins in one of so many.
const SELDOM: u32 = 16;

/// Waits for messages. Spins before it sleeps, while that saves wake-ups: a core that spins can slow its neighbour.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    /// Number of last waits in which nothing came within [`SPIN`].
    in_vain: AtomicU32,
}

impl Waiter {
    /// Waits for any of `polled`; a signal ends the wait early. Leaves the CPU to whoever needs it.
    pub(super) fn wait(&self, polled: &mut [PollFd<'_>], time: Duration) -> Result<()> {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let spins = in_vain < PATIENCE || in_vain.is_multiple_of(SELDOM);
        let spin = if spins {
            SPIN.min(time)
        } else {
            Duration::ZERO
        };
        let start = Instant::now();
        if sleep_for_any(polled, Duration::ZERO)? {
            return Ok(());
        }
        while start.elapsed() < spin {
            std::thread::yield_now();
            if sleep_for_any(polled, Duration::ZERO)? {
                self.in_vain.store(0, Ordering::Relaxed);
                return Ok(());
            }
        }
        self.in_vain
            .store(in_vain.wrapping_add(1), Ordering::Relaxed);
        sleep_for_any(polled, time.saturating_sub(start.elapsed()))?;
        Ok(())
    }
}

/// Sleeps until there is something at any of `polled`, or a signal; returns false if the time is over.
pub(super) fn sleep_for_any(polled: &mut [PollFd<'_>], time: Duration) -> Result<bool> {
    let time = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(polled, Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error),
    }
}
