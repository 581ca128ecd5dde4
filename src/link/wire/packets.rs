//! A socket that keeps pieces apart (`SOCK_SEQPACKET`): Linux.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

use crate::sync::{Mutex, lock};

use super::{Incoming, Kind, PIECE, Sent, receive_once, send_once, sleep_for_any, unsent};

/// False: a descriptor in flight stays valid after its sender closes its copy.
pub(in crate::link) const KEEP_SENT_DESCRIPTORS: bool = false;

/// One end of the wire.
#[derive(Debug)]
pub(in crate::link) struct Wire {
    end: OwnedFd,
    /// Room for the largest piece, kept from one to the next; empty until something is received.
    received: Mutex<Vec<u8>>,
}

impl Wire {
    /// Makes both ends: ours, and the descriptor of the other.
    pub(in crate::link) fn pair() -> Result<(Self, OwnedFd)> {
        let kind = (
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
        );
        let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
        Ok((Self::new(ours), theirs))
    }

    pub(in crate::link) fn new(descriptor: OwnedFd) -> Self {
        Self {
            end: descriptor,
            received: Mutex::default(),
        }
    }

    /// Sends a piece, with a descriptor, if there is room.
    pub(in crate::link) fn send(
        &self,
        kind: Kind,
        piece: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Sent> {
        let kind = [kind as u8];
        let bytes = [IoSlice::new(&kind), IoSlice::new(piece)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        send_once(&self.end, &bytes, descriptor, flags).map_or_else(unsent, |_| Ok(Sent::Done))
    }

    /// Receives a piece, if one is there.
    pub(in crate::link) fn receive(&self) -> Result<Incoming> {
        let mut bytes = lock(&self.received);
        bytes.resize(PIECE + 1, 0);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        loop {
            let (received, descriptor) = match receive_once(&self.end, &mut bytes, flags) {
                Ok(received) => received,
                Err(Errno::AGAIN) => return Ok(Incoming::Nothing),
                // The other end closed with unread pieces; what it sent before can still be read.
                Err(Errno::INTR | Errno::CONNRESET) => continue,
                Err(error) => return Err(error),
            };
            if received == 0 {
                return Ok(Incoming::End);
            }
            let kind = Kind::of(bytes[0]).ok_or(Errno::PROTO)?;
            let piece = bytes[1..received].to_vec();
            return Ok(Incoming::Piece(kind, piece, descriptor));
        }
    }

    /// Waits until the other end is closed; returns true if it is. An end that has only finished is not
    /// closed.
    pub(in crate::link) fn is_closed_within(&self, time: Duration) -> Result<bool> {
        let mut polled = [PollFd::new(&self.end, PollFlags::empty())];
        sleep_for_any(&mut polled, time)?;
        let seen = polled[0].revents();
        Ok(seen.intersects(PollFlags::HUP | PollFlags::ERR))
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
