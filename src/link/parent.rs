//! The parent's ends of the links to the workers of one iterator.
//!
//! Owns the queue of unsent messages, so that sending never waits, and its mappings of the workers' arenas. A
//! receive waits for all workers at once, for their messages and their ends, and sends queued messages
//! meanwhile. Refuses to judge why a worker is gone. In a forked child, everything here is inherited and does
//! nothing: the child shares the sockets, and their state, with the parent.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::failed;
use super::message::{Message, decode, malformed, take};
use super::socket::Socket;
use super::wire::{Incoming, Kind, Waiter};
use crate::error::{Error, Result};
use crate::fork::Uninherited;
use crate::memory::Arena;
use crate::sync::{Arc, Mutex, MutexGuard, lock};

/// An event at a link, with the link's number.
#[derive(Debug)]
pub enum Event {
    /// A worker sent a message.
    Message(usize, Message),
    /// A worker closed its end, or ended. Reported once, after its last message.
    Gone(usize),
}

impl Event {
    /// Returns the link's number.
    fn number(&self) -> usize {
        match self {
            Self::Message(number, _) | Self::Gone(number) => *number,
        }
    }

    fn is_message(&self) -> bool {
        matches!(self, Self::Message(..))
    }
}

/// The size of the arenas of an iterator's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of arenas.
    pub arenas: usize,
    /// Address space of their slots.
    pub arena_bytes: usize,
    /// Slots that a worker writes, or that are tensors here.
    pub held_bytes: usize,
}

/// All links of an iterator.
#[derive(Debug)]
pub struct Links {
    state: Uninherited<Mutex<State>>,
    waiter: Waiter,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Link>,
    events: VecDeque<Event>,
}

/// One link. Without a socket once its worker is gone.
#[derive(Debug)]
struct Link {
    socket: Option<Arc<Socket>>,
    is_free: bool,
    /// Readable once the worker has ended.
    sentinel: Option<Arc<OwnedFd>>,
    /// The pieces of a message that has not come whole.
    partial: Vec<u8>,
    arenas: HashMap<u32, Arc<Arena>>,
}

impl Default for Links {
    fn default() -> Self {
        Self::new()
    }
}

impl Links {
    /// Makes a set without links.
    pub fn new() -> Self {
        Self {
            state: Uninherited::new(Mutex::default()),
            waiter: Waiter::default(),
        }
    }

    /// Opens a link: returns its number, the lowest free one, and the worker's end.
    pub fn open(&self) -> Result<(usize, OwnedFd)> {
        let (socket, theirs) = Socket::pair().map_err(|e| failed("connect to", e))?;
        let link = Link {
            socket: Some(Arc::new(socket)),
            is_free: false,
            sentinel: None,
            partial: Vec::new(),
            arenas: HashMap::new(),
        };
        let mut state = self.state().ok_or(Error::Inherited)?;
        let free = state.links.iter().position(|link| link.is_free);
        let number = free.unwrap_or(state.links.len());
        if let Some(place) = state.links.get_mut(number) {
            *place = link;
        } else {
            state.links.push(link);
        }
        Ok((number, theirs))
    }

    /// Closes the link of a worker that is gone: drops its messages that were not received, and frees its
    /// number.
    pub fn release(&self, number: usize) {
        let Some(mut state) = self.state() else {
            return;
        };
        state.events.retain(|event| event.number() != number);
        if let Some(link) = state.links.get_mut(number) {
            link.free_arenas();
            (link.socket, link.sentinel, link.is_free) = (None, None, true);
        }
    }

    /// Sets the descriptor that becomes readable when a worker has ended. The socket alone does not tell: a
    /// process that the worker forked may hold the worker's end open.
    pub fn watch(&self, number: usize, sentinel: OwnedFd) {
        let Some(mut state) = self.state() else {
            return;
        };
        if let Some(link) = state.links.get_mut(number) {
            link.sentinel = Some(Arc::new(sentinel));
        }
    }

    /// Sends a message to a worker, or queues it until there is room. Does nothing if the worker is gone.
    pub fn send(&self, number: usize, message: &[u8]) -> Result<()> {
        let Some(state) = self.state() else {
            return Ok(());
        };
        let link = state.links.get(number);
        let Some(socket) = link.and_then(|link| link.socket.as_ref()) else {
            return Ok(());
        };
        socket.push_message(message);
        flush(socket)
    }

    /// Returns the next event, waiting at most `time` for it.
    ///
    /// # Errors
    ///
    /// Called in a forked child; or memory cannot be shared with a worker.
    pub fn receive(&self, time: Duration) -> Result<Option<Event>> {
        let next = || Ok(self.state().ok_or(Error::Inherited)?.events.pop_front());
        if let Some(event) = next()? {
            return Ok(Some(event));
        }
        self.listen(time)?;
        next()
    }

    /// Receives what has come, waiting at most `time`, and sends queued messages.
    fn listen(&self, time: Duration) -> Result<()> {
        let (sockets, sentinels) = {
            let state = self.state().ok_or(Error::Inherited)?;
            (state.sockets(), state.sentinels())
        };
        let talking = sockets
            .iter()
            .map(|(_, socket, flags)| PollFd::from_borrowed_fd(socket.as_fd(), *flags));
        let ending = sentinels
            .iter()
            .map(|(_, sentinel)| PollFd::from_borrowed_fd(sentinel.as_fd(), PollFlags::IN));
        let mut polled: Vec<_> = talking.chain(ending).collect();
        self.waiter
            .wait(&mut polled, time)
            .map_err(|e| failed("hear from", e))?;
        let (talked, ended) = polled.split_at(sockets.len());
        let mut state = self.state().ok_or(Error::Inherited)?;
        for ((number, ..), polled) in sockets.iter().zip(talked) {
            if !polled.revents().is_empty() {
                state.exchange(*number)?;
            }
        }
        for ((number, _), polled) in sentinels.iter().zip(ended) {
            if !polled.revents().is_empty() {
                state.end(*number)?;
            }
        }
        Ok(())
    }

    /// Tells all workers to finish: what they send from now on is not read.
    pub fn finish(&self) {
        let Some(state) = self.state() else {
            return;
        };
        for link in &state.links {
            if let Some(socket) = &link.socket {
                socket.finish();
            }
        }
    }

    /// Closes all links. Frees pages of workers that are gone, except where tensors use them; in a forked
    /// child closes only its copies of the sockets.
    pub fn close(&self) {
        let Some(mut state) = self.state() else {
            // Only tried: a thread that does not exist here may hold the lock.
            let state = self.state.even_if_inherited().try_lock();
            drop(state.map(|mut state| std::mem::take(&mut *state)));
            return;
        };
        let mut state = std::mem::take(&mut *state);
        state.events.clear();
        state.links.iter_mut().for_each(Link::free_arenas);
    }

    /// Returns the number of messages that came and were not received yet.
    pub fn ready(&self) -> Result<usize> {
        if self.state.get().is_none() {
            return Ok(0);
        }
        self.listen(Duration::ZERO)?;
        let state = self.state().ok_or(Error::Inherited)?;
        let messages = state.events.iter();
        Ok(messages.filter(|event| event.is_message()).count())
    }

    /// Returns what the arenas hold now; zeros in a forked child.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let Some(state) = self.state() else {
            return stats;
        };
        for arena in state.links.iter().flat_map(|link| link.arenas.values()) {
            stats.arenas += 1;
            stats.arena_bytes += arena.slots() * arena.slot_bytes();
            stats.held_bytes += arena.held() * arena.slot_bytes();
        }
        stats
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.state.get().map(lock)
    }
}

impl State {
    /// Returns the sockets to poll, with their link numbers and the events to poll for.
    fn sockets(&self) -> Vec<(usize, Arc<Socket>, PollFlags)> {
        let open = |(number, link): (usize, &Link)| {
            let socket = Arc::clone(link.socket.as_ref()?);
            let wanted = socket.wanted();
            Some((number, socket, wanted))
        };
        self.links.iter().enumerate().filter_map(open).collect()
    }

    /// Returns the descriptors that tell of the end of workers not known to be gone, with their link numbers.
    fn sentinels(&self) -> Vec<(usize, Arc<OwnedFd>)> {
        let watched = |(number, link): (usize, &Link)| {
            link.socket.as_ref()?;
            Some((number, Arc::clone(link.sentinel.as_ref()?)))
        };
        self.links.iter().enumerate().filter_map(watched).collect()
    }

    /// Receives what a worker sent before it ended; drops a message that is incomplete.
    fn end(&mut self, number: usize) -> Result<()> {
        self.exchange(number)?;
        let link = self.links.get_mut(number);
        if link.is_some_and(|link| link.socket.take().is_some()) {
            self.events.push_back(Event::Gone(number));
        }
        Ok(())
    }

    /// Sends what is queued at a link, and receives everything that came.
    fn exchange(&mut self, number: usize) -> Result<()> {
        let Some(link) = self.links.get_mut(number) else {
            return Ok(());
        };
        if let Some(socket) = &link.socket {
            flush(socket)?;
        }
        while let Some(socket) = link.socket.clone() {
            match socket.receive().map_err(|e| failed("hear from", e))? {
                Incoming::Nothing => break,
                Incoming::End => {
                    link.socket = None;
                    self.events.push_back(Event::Gone(number));
                }
                Incoming::Piece(Kind::Arena, piece, descriptor) => {
                    link.map_arena(&piece, descriptor)?;
                }
                Incoming::Piece(Kind::Unmapped, piece, _) => link.unmap_arena(&piece)?,
                Incoming::Piece(Kind::More, piece, _) => link.partial.extend(piece),
                Incoming::Piece(Kind::Received, ..) => {} // handled by the socket
                Incoming::Piece(Kind::Last, piece, _) => {
                    let mut bytes = std::mem::take(&mut link.partial);
                    bytes.extend(piece);
                    let message =
                        decode(bytes, &link.arenas).map_err(|e| failed("read a message of", e))?;
                    self.events.push_back(Event::Message(number, message));
                }
            }
        }
        Ok(())
    }
}

impl Link {
    /// Frees the pages that no tensor uses: the worker is gone.
    fn free_arenas(&mut self) {
        for (_, arena) in self.arenas.drain() {
            for slot in 0..arena.slots() {
                arena.free_pages(slot);
            }
        }
    }

    /// Maps an arena that the worker made.
    fn map_arena(&mut self, mut description: &[u8], descriptor: Option<OwnedFd>) -> Result<()> {
        let open = || -> std::io::Result<Arena> {
            let number = u32::from_le_bytes(take(&mut description)?);
            let slots = u32::from_le_bytes(take(&mut description)?) as usize;
            let slot_bytes = u64::from_le_bytes(take(&mut description)?) as usize;
            // The system drops a descriptor when the process has too many open.
            let descriptor = descriptor.ok_or(rustix::io::Errno::MFILE)?;
            if !description.is_empty() {
                return Err(malformed());
            }
            Arena::open(descriptor, number, slot_bytes, slots)
        };
        let arena = open().map_err(|e| failed("share memory with", e))?;
        self.arenas.insert(arena.number(), Arc::new(arena));
        Ok(())
    }

    /// Unmaps an arena that the worker has unmapped; no slot of it is held.
    fn unmap_arena(&mut self, mut number: &[u8]) -> Result<()> {
        let number = take(&mut number).map_err(|e| failed("read a message of", e))?;
        self.arenas.remove(&u32::from_le_bytes(number));
        Ok(())
    }
}

/// Sends what is queued at a socket, as long as there is room; does nothing if the worker is gone.
fn flush(socket: &Socket) -> Result<()> {
    socket.flush().map_err(|e| failed("talk to", e))?;
    Ok(())
}
