//! One end of a connected pair of sockets that keep messages apart.
//!
//! Owns the pieces that longer messages are sent in: the system bounds the size of one. Refuses to wait,
//! but where it is asked to.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};

/// Most bytes of a piece.
pub(super) const PIECE: usize = 32 << 10;

/// What a piece is: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last piece of a message.
    Last,
    /// There are more of the same message.
    More,
    /// Describes an arena, whose descriptor comes with it.
    Arena,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let kinds = [Self::Last, Self::More, Self::Arena];
        kinds.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    /// There is no room for it now.
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

/// One end.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Makes both ends: one of ours, and the other's descriptor.
    pub(super) fn pair() -> Result<(Self, OwnedFd)> {
        let kind = (
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
        );
        let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
        Ok((Self(ours), theirs))
    }

    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Sends a piece, with a descriptor, if there is room.
    pub(super) fn send(
        &self,
        kind: Kind,
        piece: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Sent> {
        let kind = [kind as u8];
        let bytes = [IoSlice::new(&kind), IoSlice::new(piece)];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(&self.0, &bytes, &mut control, flags) {
            Ok(_) => Ok(Sent::Done),
            // the last: too many descriptors are on their way, until somebody reads
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::TOOMANYREFS) => Ok(Sent::Full),
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(Sent::Gone),
            Err(error) => Err(error),
        }
    }

    /// Receives a piece, if one is there.
    pub(super) fn receive(&self) -> Result<Came> {
        let mut bytes = vec![0; PIECE + 1];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let mut into = [IoSliceMut::new(&mut bytes)];
            let received = match recvmsg(&self.0, &mut into, &mut control, flags) {
                Ok(received) => received.bytes,
                Err(Errno::AGAIN) => return Ok(Came::Nothing),
                // a reset end had unread pieces: what it sent itself is here still
                Err(Errno::INTR | Errno::CONNRESET) => continue,
                Err(error) => return Err(error),
            };
            if received == 0 {
                return Ok(Came::End);
            }
            let mut descriptor = None;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                    descriptor = descriptors.next();
                }
            }
            let kind = Kind::of(bytes[0]).ok_or(Errno::PROTO)?;
            bytes.truncate(received);
            bytes.drain(..1);
            return Ok(Came::Piece(kind, bytes, descriptor));
        }
    }

    /// Says that nothing more will be sent. The other end may go on sending, in vain.
    pub(super) fn finish(&self) {
        // fails when the other end is gone, which is as good
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    /// Waits until one of `wanted` holds, the other end is finished, or the time is over.
    pub(super) fn wait(&self, wanted: PollFlags, time: Duration) -> Result<PollFlags> {
        let mut polled = [PollFd::new(&self.0, wanted | PollFlags::RDHUP)];
        wait_for_any(&mut polled, time)?;
        Ok(polled[0].revents())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
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
