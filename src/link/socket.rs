//! One end of a link: what waits to be sent, and what has come and nobody asked for yet.
//!
//! Owns the order of both, and that sending never waits. Refuses to wait, but where it is asked to. Invariants:
//! what was pushed once is sent whole, unless the other end is gone; and whether the other end has finished is
//! known also while there are pieces of it that nobody has asked for.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Result;
use rustix::net::{Shutdown, shutdown};

use super::wire::{Came, KEEPS_DESCRIPTORS, Kind, PIECE, Sent, Wire, wait_for_any};
use crate::sync::{Mutex, lock};

/// One end.
#[derive(Debug)]
pub(super) struct Socket {
    wire: Wire,
    outbox: Mutex<Outbox>,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct Outbox {
    waiting: VecDeque<(Kind, Vec<u8>, Option<OwnedFd>)>,
    /// Descriptors that are on their way, where they are kept until they have come.
    lent: VecDeque<OwnedFd>,
}

#[derive(Debug, Default)]
struct Inbox {
    pieces: VecDeque<Came>,
    is_over: bool,
}

impl Socket {
    /// Makes both ends: one of ours, and the other's descriptor.
    pub(super) fn pair() -> Result<(Self, OwnedFd)> {
        let (wire, theirs) = Wire::pair()?;
        Ok((Self::over(wire), theirs))
    }

    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self::over(Wire::new(descriptor))
    }

    fn over(wire: Wire) -> Self {
        Self {
            wire,
            outbox: Mutex::new(Outbox::default()),
            inbox: Mutex::new(Inbox::default()),
        }
    }

    /// Has a piece sent by the next [`Self::flush`], after those that wait.
    pub(super) fn push(&self, kind: Kind, piece: &[u8], descriptor: Option<OwnedFd>) {
        let next = (kind, piece.to_vec(), descriptor);
        lock(&self.outbox).waiting.push_back(next);
    }

    /// Has a message sent by the next [`Self::flush`], after what waits.
    pub(super) fn push_message(&self, message: &[u8]) {
        let mut pieces = message.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none();
            self.push(if is_last { Kind::Last } else { Kind::More }, piece, None);
        }
    }

    /// Sends what waits, as long as there is room.
    pub(super) fn flush(&self) -> Result<Sent> {
        let mut outbox = lock(&self.outbox);
        while let Some((kind, piece, descriptor)) = outbox.waiting.front() {
            let lent = descriptor.as_ref().map(AsFd::as_fd);
            match self.wire.send(*kind, piece, lent)? {
                Sent::Done => {
                    let sent = outbox.waiting.pop_front();
                    if KEEPS_DESCRIPTORS {
                        outbox.lent.extend(sent.and_then(|(.., lent)| lent));
                    }
                }
                Sent::Full => return Ok(Sent::Full),
                Sent::Gone => {
                    outbox.waiting.clear();
                    return Ok(Sent::Gone);
                }
            }
        }
        Ok(Sent::Done)
    }

    /// Receives a piece, if one is there.
    pub(super) fn receive(&self) -> Result<Came> {
        let mut inbox = lock(&self.inbox);
        match inbox.pieces.pop_front() {
            Some(piece) => Ok(piece),
            None if inbox.is_over => Ok(Came::End),
            None => self.next(),
        }
    }

    /// Takes the next piece from the wire; says that a descriptor has come, or hears that.
    fn next(&self) -> Result<Came> {
        loop {
            let came = self.wire.receive()?;
            match &came {
                Came::Piece(Kind::Received, ..) => drop(lock(&self.outbox).lent.pop_front()),
                Came::Piece(Kind::Arena, ..) if KEEPS_DESCRIPTORS => {
                    self.push(Kind::Received, &[], None);
                    self.flush()?;
                    return Ok(came);
                }
                _ => return Ok(came),
            }
        }
    }

    /// Says that nothing more will be sent. The other end may go on sending, in vain.
    pub(super) fn finish(&self) {
        lock(&self.outbox).waiting.clear();
        // fails when the other end is gone, which is as good
        let _ = shutdown(&self.wire, Shutdown::Write);
    }

    /// Tells whether the other end has finished, or is gone: takes in what there is, to be received later.
    pub(super) fn is_finished(&self) -> Result<bool> {
        let mut inbox = lock(&self.inbox);
        while !inbox.is_over {
            match self.next()? {
                Came::Nothing => break,
                Came::End => inbox.is_over = true,
                piece @ Came::Piece(..) => inbox.pieces.push_back(piece),
            }
        }
        Ok(inbox.is_over)
    }

    /// Waits until something has come, and sends what waits as soon as there is room for it.
    pub(super) fn wait(&self, time: Duration) -> Result<()> {
        let mut polled = [PollFd::new(&self.wire, self.wanted())];
        wait_for_any(&mut polled, time)?;
        self.flush()?;
        Ok(())
    }

    /// Waits until there may be room; returns false if nobody will make any: the other end has finished.
    pub(super) fn wait_for_room(&self, time: Duration) -> Result<bool> {
        let mut polled = [PollFd::new(&self.wire, PollFlags::IN | PollFlags::OUT)];
        wait_for_any(&mut polled, time)?;
        let has_come = polled[0].revents() != PollFlags::OUT;
        Ok(!has_come || !self.is_finished()?)
    }

    /// Returns what to wait for.
    pub(super) fn wanted(&self) -> PollFlags {
        if lock(&self.outbox).waiting.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    use rustix::io::{FdFlags, fcntl_getfd};

    const LONG: Duration = Duration::from_secs(20);

    fn pair() -> (Socket, Socket) {
        let (ours, theirs) = Socket::pair().expect("two sockets");
        (ours, Socket::new(theirs))
    }

    /// Receives a piece that is there or on its way.
    fn piece(socket: &Socket) -> (Kind, Vec<u8>, Option<OwnedFd>) {
        loop {
            match socket.receive().expect("a socket") {
                Came::Piece(kind, bytes, descriptor) => return (kind, bytes, descriptor),
                Came::Nothing => socket.wait(LONG).expect("a socket"),
                Came::End => panic!("the end"),
            }
        }
    }

    fn is_end(socket: &Socket) -> bool {
        matches!(socket.receive().expect("a socket"), Came::End)
    }

    #[test]
    fn pieces_come_as_they_were_pushed_whatever_the_room() {
        let (ours, theirs) = pair();
        let message: Vec<u8> = (0..3_000_000_u32)
            .map(|place| (place % 251) as u8)
            .collect();
        ours.push(Kind::Gone, b"", None);
        ours.push_message(&message);
        assert_eq!(ours.flush().unwrap(), Sent::Full);
        assert_eq!(ours.wanted(), PollFlags::IN | PollFlags::OUT);
        assert!(matches!(piece(&theirs), (Kind::Gone, empty, None) if empty.is_empty()));
        let mut come = Vec::new();
        loop {
            match theirs.receive().unwrap() {
                Came::Piece(kind, bytes, None) => {
                    come.extend(bytes);
                    if kind == Kind::Last {
                        break;
                    }
                    assert_eq!(kind, Kind::More);
                }
                Came::Nothing => drop(ours.flush().unwrap()),
                other => panic!("{other:?}"),
            }
        }
        assert!(come == message);
        assert_eq!(ours.wanted(), PollFlags::IN);
        assert!(matches!(theirs.receive().unwrap(), Came::Nothing));
    }

    #[test]
    fn who_waits_for_room_gets_it_or_hears_of_the_end() {
        let (ours, theirs) = pair();
        ours.push_message(&vec![0; 3_000_000]);
        assert_eq!(ours.flush().unwrap(), Sent::Full);
        assert!(ours.wait_for_room(Duration::ZERO).unwrap());
        theirs.push_message(b"unread");
        theirs.flush().unwrap();
        theirs.finish();
        assert!(!ours.wait_for_room(LONG).unwrap());
        assert_eq!(piece(&ours).1, b"unread");
        assert!(is_end(&ours));
    }

    #[test]
    fn descriptors_come_with_their_pieces() {
        let (ours, theirs) = pair();
        for word in [b"a", b"b", b"c"] {
            let (readable, writable) = std::io::pipe().unwrap();
            (&writable).write_all(word).unwrap();
            ours.push_message(b"between");
            ours.push(Kind::Arena, word, Some(readable.into()));
        }
        assert_eq!(ours.flush().unwrap(), Sent::Done);
        assert_eq!(
            lock(&ours.outbox).lent.len(),
            if KEEPS_DESCRIPTORS { 3 } else { 0 }
        );
        for word in [b"a", b"b", b"c"] {
            assert!(matches!(piece(&theirs), (Kind::Last, _, None)));
            let (kind, bytes, descriptor) = piece(&theirs);
            assert_eq!((kind, bytes.as_slice()), (Kind::Arena, word.as_slice()));
            let descriptor = descriptor.expect("a descriptor");
            let flags = fcntl_getfd(&descriptor).unwrap();
            assert!(flags.contains(FdFlags::CLOEXEC));
            let mut content = String::new();
            File::from(descriptor).read_to_string(&mut content).unwrap();
            assert_eq!(content.as_bytes(), word);
        }
        assert!(matches!(ours.receive().unwrap(), Came::Nothing));
        assert!(lock(&ours.outbox).lent.is_empty());
    }

    #[test]
    fn the_end_is_known_before_all_is_read() {
        let (ours, theirs) = pair();
        assert!(!theirs.is_finished().unwrap());
        ours.push_message(b"first");
        ours.push_message(b"second");
        ours.flush().unwrap();
        assert!(!theirs.is_finished().unwrap());
        ours.finish();
        assert!(theirs.is_finished().unwrap());
        // one that has finished hears on
        theirs.push_message(b"answer");
        assert_eq!(theirs.flush().unwrap(), Sent::Done);
        assert_eq!(piece(&ours).1, b"answer");
        assert_eq!(
            (piece(&theirs).1, piece(&theirs).1),
            (b"first".to_vec(), b"second".to_vec())
        );
        assert!(is_end(&theirs) && is_end(&theirs));
    }

    #[test]
    fn one_that_is_closed_is_told_from_one_that_has_finished() {
        let (ours, theirs) = pair();
        assert!(!theirs.wire.is_closed_within(Duration::ZERO).unwrap());
        ours.finish();
        assert!(
            !theirs
                .wire
                .is_closed_within(Duration::from_millis(1))
                .unwrap()
        );
        drop(ours);
        assert!(
            theirs
                .wire
                .is_closed_within(Duration::from_millis(1))
                .unwrap()
        );
        theirs.push_message(b"in vain");
        assert_eq!(theirs.flush().unwrap(), Sent::Gone);
    }

    #[test]
    fn what_was_sent_before_the_end_is_received() {
        let (ours, theirs) = pair();
        theirs.push_message(b"unread");
        theirs.flush().unwrap();
        ours.push_message(b"last words");
        ours.flush().unwrap();
        drop(ours); // with something unread, which resets
        assert_eq!(piece(&theirs).1, b"last words");
        assert!(is_end(&theirs));
    }
}
