//! What pieces travel on: a pair of connected sockets.
//!
//! Owns what systems do differently, in [`Wire`]: Linux keeps pieces apart itself; elsewhere they are bytes with
//! a length in front. Refuses to wait, but for the end of the other process. Invariant: a piece comes whole or
//! not at all, and the descriptor that comes with it is the one that it was sent with, or none.

#[cfg(memfd)]
mod packets;
#[cfg(not(memfd))]
mod stream;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

#[cfg(memfd)]
pub(super) use packets::{KEEPS_DESCRIPTORS, Wire};
#[cfg(not(memfd))]
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

/// Sends bytes, with a descriptor, in one call; returns how many.
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

/// Returns what an error of [`send_once`] says of the piece, if it is one to go on after.
fn unsent(error: Errno) -> Result<Sent> {
    match error {
        // the last: too many descriptors are on their way, until somebody reads
        Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::TOOMANYREFS => Ok(Sent::Full),
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Ok(Sent::Gone),
        error => Err(error),
    }
}

/// Receives bytes in one call; returns how many, and the descriptor that came with them.
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
