//! What pieces travel on: a pair of connected sockets.
//!
//! Owns what systems do differently, in [`Wire`]: Linux keeps pieces apart itself; elsewhere they are bytes with
//! a length in front. Refuses to wait, but for the end of the other process. Invariant: a piece comes whole or
//! not at all, and the descriptor that comes with it is the one that it was sent with, or none.

#[cfg(all(target_os = "linux", not(feature = "posix_shm")))]
mod packets;
#[cfg(not(all(target_os = "linux", not(feature = "posix_shm"))))]
mod stream;

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::{Errno, Result};

#[cfg(all(target_os = "linux", not(feature = "posix_shm")))]
pub(super) use packets::{KEEPS_DESCRIPTORS, Wire};
#[cfg(not(all(target_os = "linux", not(feature = "posix_shm"))))]
pub(super) use stream::{KEEPS_DESCRIPTORS, Wire};

/// Most bytes of a piece.
pub(super) const PIECE: usize = 32 << 10;

/// What a piece is: a byte in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last piece of a message.
    Last,
    /// There are more of the same message.
    More,
    /// Describes an arena, whose descriptor comes with it.
    Arena,
    /// A descriptor has come, the first of those of which that was not said yet.
    Received,
    /// Names an arena that nobody holds, and that its process has no more.
    Gone,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let kinds = [
            Self::Last,
            Self::More,
            Self::Arena,
            Self::Received,
            Self::Gone,
        ];
        kinds.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    /// There is no room for it now, or for its rest.
    Full,
    /// Nobody will ever read it.
    Gone,
}

/// What came.
#[derive(Debug)]
pub(super) enum Came {
    Piece(Kind, Vec<u8>, Option<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// Waits for any of `polled`; a signal ends it early.
pub(super) fn wait_for_any(polled: &mut [PollFd<'_>], time: Duration) -> Result<()> {
    let time = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(polled, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
