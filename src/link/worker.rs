//! A worker's end of the link to its parent.
//!
//! Owns the worker's arenas, and introduces each new one to the parent at once, so that no descriptor is
//! kept. Refuses to do anything in processes that the worker forks: what they inherited is the worker's.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::failed;
use super::letter::encode;
use super::socket::{Came, Kind, PIECE, Sent, Socket};
use crate::error::Result;
use crate::fork;
use crate::memory::{Arena, ArenaSlot, Arenas};
use crate::sync::{Mutex, lock};

/// Longest time between two looks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// How long a slot is idle before its pages are given back.
const IDLE: Duration = Duration::from_secs(2);

/// Payloads of more bytes lie in an arena, so that sending seldom has to wait for room.
const LARGE: usize = 16 << 10;

/// What a worker hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Message(Vec<u8>),
    /// Nothing, for the time given.
    Nothing,
    /// The parent has finished, or is gone.
    End,
}

/// A worker's end.
#[derive(Debug)]
pub struct Worker {
    socket: Socket,
    arenas: Mutex<Arenas>,
    birth: u64,
}

impl Worker {
    /// Takes the end over that the parent has made.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self {
            socket: Socket::new(descriptor),
            arenas: Mutex::new(Arenas::default()),
            birth: fork::generation(),
        }
    }

    /// Waits for a message; calls `tick` now and then, and gives back memory that is idle.
    pub fn receive(
        &self,
        timeout: Duration,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Heard> {
        let end = Instant::now() + timeout;
        let mut message = Vec::new();
        lock(&self.arenas).tidy(IDLE);
        loop {
            match self.socket.receive().map_err(|e| failed("hear from", e))? {
                Came::Piece(Kind::More, piece, _) => message.extend(piece),
                Came::Piece(_, piece, _) => {
                    message.extend(piece);
                    return Ok(Heard::Message(message));
                }
                Came::End => return Ok(Heard::End),
                Came::Nothing => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() && message.is_empty() {
                        return Ok(Heard::Nothing);
                    }
                    tick()?;
                    self.trim(IDLE);
                    let time = if message.is_empty() {
                        left.min(SLICE)
                    } else {
                        SLICE
                    };
                    let wait = self.socket.wait(PollFlags::IN, time);
                    wait.map_err(|e| failed("hear from", e))?;
                }
            }
        }
    }

    /// Tells whether the parent has finished: nobody wants what is made now.
    pub fn is_over(&self) -> bool {
        let seen = self.socket.wait(PollFlags::empty(), Duration::ZERO);
        seen.is_ok_and(|seen| seen.intersects(PollFlags::RDHUP | PollFlags::HUP))
    }

    /// Takes a slot for `bytes` bytes; None in a process that the worker has forked.
    pub fn take(
        &self,
        bytes: usize,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ArenaSlot>> {
        if fork::inherited(self.birth) {
            return Ok(None);
        }
        let (slot, fresh) = lock(&self.arenas).take(bytes)?;
        if let Some((arena, descriptor)) = fresh {
            self.piece(Kind::Arena, &introduction(&arena), Some(&descriptor), tick)?;
        }
        Ok(Some(slot))
    }

    /// Finds the place of bytes that lie in a slot of which the caller has a share.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        if fork::inherited(self.birth) {
            return None;
        }
        lock(&self.arenas).share(address, len)
    }

    /// Sends a letter, and with it the shares of its parts. If the parent has finished, nobody has them.
    pub fn send(
        &self,
        mut parts: Vec<ArenaSlot>,
        mut payload: &[u8],
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut last = false;
        if payload.len() > LARGE
            && let Some(mut slot) = self.take(payload.len(), tick)?
        {
            slot.write(payload);
            parts.push(slot);
            (payload, last) = (&[], true);
        }
        let bytes = encode(&parts, payload, last);
        let mut pieces = bytes.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let kind = if pieces.peek().is_some() {
                Kind::More
            } else {
                Kind::Last
            };
            if !self.piece(kind, piece, None, tick)? {
                return Ok(());
            }
        }
        parts.into_iter().for_each(ArenaSlot::hand_over);
        Ok(())
    }

    /// Gives the pages of slots that have been free for so long back to the system; returns their bytes.
    pub fn trim(&self, idle: Duration) -> usize {
        lock(&self.arenas).trim(idle)
    }

    /// Sends a piece as soon as there is room; tells whether the parent will read it.
    fn piece(
        &self,
        kind: Kind,
        piece: &[u8],
        descriptor: Option<&OwnedFd>,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<bool> {
        loop {
            let sent = self.socket.send(kind, piece, descriptor.map(AsFd::as_fd));
            match sent.map_err(|e| failed("talk to", e))? {
                Sent::Done => return Ok(true),
                Sent::Gone => return Ok(false),
                Sent::Full => {}
            }
            tick()?;
            let seen = self
                .socket
                .wait(PollFlags::OUT, SLICE)
                .map_err(|e| failed("talk to", e))?;
            if seen.intersects(PollFlags::RDHUP | PollFlags::HUP) {
                return Ok(false);
            }
        }
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the bytes that describe an arena: its number, its slots, and the bytes of each.
fn introduction(arena: &Arena) -> Vec<u8> {
    let mut bytes = arena.number().to_le_bytes().to_vec();
    bytes.extend((arena.slots() as u32).to_le_bytes());
    bytes.extend((arena.slot_bytes() as u64).to_le_bytes());
    bytes
}
