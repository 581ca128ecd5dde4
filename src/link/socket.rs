//! One end of a link, with a queue of unsent pieces and one of unread pieces.
//!
//! Owns the order of both queues. Sending never waits; only the `wait` methods do. Invariants: a piece that
//! was queued is sent whole, unless the other end is gone; and the end of the other side is known even while
//! some of its pieces are unread.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Result;
use rustix::net::{Shutdown, shutdown};

use super::wire::{
    Incoming, KEEP_SENT_DESCRIPTORS, Kind, PIECE, Sent, Waiter, Wire, sleep_for_any,
};
use crate::sync::{Mutex, lock};

/// One end of a link.
#[derive(Debug)]
pub(super) struct Socket {
    wire: Wire,
    outbox: Mutex<Outbox>,
    inbox: Mutex<Inbox>,
    waiter: Waiter,
}

#[derive(Debug, Default)]
struct Outbox {
    waiting: VecDeque<(Kind, Vec<u8>, Option<OwnedFd>)>,
    /// Descriptors in flight, kept open until the other end has received them.
    lent: VecDeque<OwnedFd>,
}

#[derive(Debug, Default)]
struct Inbox {
    pieces: VecDeque<Incoming>,
    is_over: bool,
}

impl Socket {
    /// Makes both ends: ours, and the descriptor of the other.
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
            waiter: Waiter::default(),
        }
    }

    /// Queues a piece for the next [`Self::flush`].
    pub(super) fn push(&self, kind: Kind, piece: &[u8], descriptor: Option<OwnedFd>) {
        let next = (kind, piece.to_vec(), descriptor);
        lock(&self.outbox).waiting.push_back(next);
    }

    /// Queues a message for the next [`Self::flush`].
    pub(super) fn push_message(&self, message: &[u8]) {
        let mut pieces = message.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none();
            self.push(if is_last { Kind::Last } else { Kind::More }, piece, None);
        }
    }

    /// Sends what is queued, as long as there is room.
    pub(super) fn flush(&self) -> Result<Sent> {
        let mut outbox = lock(&self.outbox);
        while let Some((kind, piece, descriptor)) = outbox.waiting.front() {
            let lent = descriptor.as_ref().map(AsFd::as_fd);
            match self.wire.send(*kind, piece, lent)? {
                Sent::Done => {
                    let sent = outbox.waiting.pop_front();
                    if KEEP_SENT_DESCRIPTORS {
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
    pub(super) fn receive(&self) -> Result<Incoming> {
        let mut inbox = lock(&self.inbox);
        match inbox.pieces.pop_front() {
            Some(piece) => Ok(piece),
            None if inbox.is_over => Ok(Incoming::End),
            None => self.next(),
        }
    }

    /// Takes the next piece from the wire; acknowledges descriptors, and handles acknowledgements.
    fn next(&self) -> Result<Incoming> {
        loop {
            let came = self.wire.receive()?;
            match &came {
                Incoming::Piece(Kind::Received, ..) => drop(lock(&self.outbox).lent.pop_front()),
                Incoming::Piece(Kind::Arena, ..) if KEEP_SENT_DESCRIPTORS => {
                    self.push(Kind::Received, &[], None);
                    self.flush()?;
                    return Ok(came);
                }
                _ => return Ok(came),
            }
        }
    }

    /// Tells the other end that nothing more will be sent. What it still sends is not read.
    pub(super) fn finish(&self) {
        lock(&self.outbox).waiting.clear();
        // Fails if the other end is gone, which has the same effect.
        let _ = shutdown(&self.wire, Shutdown::Write);
    }

    /// Returns true if the other end has finished or is gone. Reads ahead to find out; [`Self::receive`]
    /// returns those pieces later.
    pub(super) fn is_finished(&self) -> Result<bool> {
        let mut inbox = lock(&self.inbox);
        while !inbox.is_over {
            match self.next()? {
                Incoming::Nothing => break,
                Incoming::End => inbox.is_over = true,
                piece @ Incoming::Piece(..) => inbox.pieces.push_back(piece),
            }
        }
        Ok(inbox.is_over)
    }

    /// Waits until something has come; sends what is queued as soon as there is room.
    pub(super) fn wait(&self, time: Duration) -> Result<()> {
        let mut polled = [PollFd::new(&self.wire, self.wanted())];
        self.waiter.wait(&mut polled, time)?;
        self.flush()?;
        Ok(())
    }

    /// Waits until there may be room; returns false if the other end has finished, so that there never will
    /// be.
    pub(super) fn wait_for_room(&self, time: Duration) -> Result<bool> {
        let mut polled = [PollFd::new(&self.wire, PollFlags::IN | PollFlags::OUT)];
        sleep_for_any(&mut polled, time)?;
        let has_come = polled[0].revents() != PollFlags::OUT;
        Ok(!has_come || !self.is_finished()?)
    }

    /// Returns the events to poll for.
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
    use std::time::Instant;

    use rustix::io::{FdFlags, fcntl_getfd};

    const LONG: Duration = Duration::from_secs(20);

    fn pair() -> (Socket, Socket) {
        let (ours, theirs) = Socket::pair().expect("two sockets");
        (ours, Socket::new(theirs))
    }

    /// Receives a piece, waiting for it if necessary.
    fn piece(socket: &Socket) -> (Kind, Vec<u8>, Option<OwnedFd>) {
        loop {
            match socket.receive().expect("a socket") {
                Incoming::Piece(kind, bytes, descriptor) => return (kind, bytes, descriptor),
                Incoming::Nothing => socket.wait(LONG).expect("a socket"),
                Incoming::End => panic!("the end"),
            }
        }
    }

    fn is_end(socket: &Socket) -> bool {
        matches!(socket.receive().expect("a socket"), Incoming::End)
    }

    #[test]
    fn pieces_come_whole_and_in_order_whatever_the_room() {
        let (ours, theirs) = pair();
        let message: Vec<u8> = (0..3_000_000_u32)
            .map(|place| (place % 251) as u8)
            .collect();
        ours.push(Kind::Unmapped, b"", None);
        ours.push_message(&message);
        assert_eq!(ours.flush().unwrap(), Sent::Full);
        assert_eq!(ours.wanted(), PollFlags::IN | PollFlags::OUT);
        assert!(matches!(piece(&theirs), (Kind::Unmapped, empty, None) if empty.is_empty()));
        let mut come = Vec::new();
        loop {
            match theirs.receive().unwrap() {
                Incoming::Piece(kind, bytes, None) => {
                    come.extend(bytes);
                    if kind == Kind::Last {
                        break;
                    }
                    assert_eq!(kind, Kind::More);
                }
                Incoming::Nothing => drop(ours.flush().unwrap()),
                other => panic!("{other:?}"),
            }
        }
        assert!(come == message);
        assert_eq!(ours.wanted(), PollFlags::IN);
        assert!(matches!(theirs.receive().unwrap(), Incoming::Nothing));
    }

    #[test]
    fn waiting_for_room_ends_with_room_or_the_other_end() {
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
    fn a_wait_ends_in_time_or_with_what_comes() {
        let (ours, theirs) = pair();
        // without a wait, within the time of spinning, and beyond it
        for micros in [0, 20, 3_000] {
            let (start, time) = (Instant::now(), Duration::from_micros(micros));
            ours.wait(time).unwrap();
            assert!(start.elapsed() >= time);
        }
        for _ in 0..20 {
            ours.wait(Duration::from_micros(100)).unwrap(); // in vain, after which most waits do not spin
        }
        for delay in [0, 20, 3_000].map(Duration::from_micros) {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(delay);
                    theirs.push_message(b"late");
                    theirs.flush().unwrap();
                });
                let start = Instant::now();
                ours.wait(LONG).unwrap();
                assert!(start.elapsed() < LONG / 2);
                assert_eq!(piece(&ours).1, b"late");
            });
        }
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
            if KEEP_SENT_DESCRIPTORS { 3 } else { 0 }
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
        assert!(matches!(ours.receive().unwrap(), Incoming::Nothing));
        assert!(lock(&ours.outbox).lent.is_empty());
    }

    #[test]
    fn the_end_is_known_before_everything_is_read() {
        let (ours, theirs) = pair();
        assert!(!theirs.is_finished().unwrap());
        ours.push_message(b"first");
        ours.push_message(b"second");
        ours.flush().unwrap();
        assert!(!theirs.is_finished().unwrap());
        ours.finish();
        assert!(theirs.is_finished().unwrap());
        // An end that has finished can still receive.
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
    fn a_closed_end_differs_from_a_finished_one() {
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
        // a process that another test forks meanwhile holds it until it ends
        assert!(
            theirs
                .wire
                .is_closed_within(Duration::from_secs(1))
                .unwrap()
        );
        theirs.push_message(b"in vain");
        assert_eq!(theirs.flush().unwrap(), Sent::Gone);
    }

    #[test]
    fn pieces_sent_before_the_end_are_received() {
        let (ours, theirs) = pair();
        theirs.push_message(b"unread");
        theirs.flush().unwrap();
        ours.push_message(b"last words");
        ours.flush().unwrap();
        drop(ours); // closing with unread data resets the connection
        assert_eq!(piece(&theirs).1, b"last words");
        assert!(is_end(&theirs));
    }
}
