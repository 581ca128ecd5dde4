//! The parent's ends of the links to the workers of one iterator.
//!
//! Owns what waits to be sent, so that sending never waits, and the arenas that the workers have made.
//! Whoever receives waits for all workers at once, for their letters and for their ends, and sends on what
//! waited. Refuses to judge why a worker is gone. In a forked child everything here is inherited and does nothing: the sockets are
//! shared with the parent, and so is their state.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::failed;
use super::letter::{Letter, decode, malformed, take};
use super::socket::Socket;
use super::wire::{Came, Kind, wait_for_any};
use crate::error::{Error, Result};
use crate::fork::Uninherited;
use crate::memory::Arena;
use crate::sync::{Arc, Mutex, MutexGuard, lock};

/// What happens at one of the links, which is numbered.
#[derive(Debug)]
pub enum Event {
    /// A letter of a worker.
    Letter(usize, Letter),
    /// A worker has closed its end, or has ended. Told once, after its last letter.
    Gone(usize),
}

impl Event {
    /// The link's number.
    fn number(&self) -> usize {
        match self {
            Self::Letter(number, _) | Self::Gone(number) => *number,
        }
    }

    fn is_letter(&self) -> bool {
        matches!(self, Self::Letter(..))
    }
}

/// What the arenas of an iterator's workers hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many there are.
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
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Link>,
    events: VecDeque<Event>,
}

/// One link; without a socket once its worker is gone.
#[derive(Debug)]
struct Link {
    socket: Option<Arc<Socket>>,
    is_free: bool,
    sentinel: Option<Arc<OwnedFd>>,
    begun: Vec<u8>,
    arenas: HashMap<u32, Arc<Arena>>,
}

impl Default for Links {
    fn default() -> Self {
        Self::new()
    }
}

impl Links {
    /// Makes no link yet.
    pub fn new() -> Self {
        Self {
            state: Uninherited::new(Mutex::default()),
        }
    }

    /// Opens a link: returns its number, the lowest that is free, and the end that its worker is to have.
    pub fn open(&self) -> Result<(usize, OwnedFd)> {
        let (socket, theirs) = Socket::pair().map_err(|e| failed("connect to", e))?;
        let link = Link {
            socket: Some(Arc::new(socket)),
            is_free: false,
            sentinel: None,
            begun: Vec::new(),
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

    /// Closes one link, whose worker is gone, for good: what came from it and was not received is
    /// forgotten, and its number is free.
    pub fn release(&self, number: usize) {
        let Some(mut state) = self.state() else {
            return;
        };
        state.events.retain(|event| event.number() != number);
        if let Some(link) = state.links.get_mut(number) {
            link.give_back();
            (link.socket, link.sentinel, link.is_free) = (None, None, true);
        }
    }

    /// Takes the descriptor that is readable once a worker has ended: somebody else, as a process that it
    /// forked, may hold its end of the link open.
    pub fn watch(&self, number: usize, sentinel: OwnedFd) {
        let Some(mut state) = self.state() else {
            return;
        };
        if let Some(link) = state.links.get_mut(number) {
            link.sentinel = Some(Arc::new(sentinel));
        }
    }

    /// Sends a message to a worker, or keeps it until there is room. Nothing reaches one that is gone.
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

    /// Returns what has happened, waiting for it at most so long.
    ///
    /// # Errors
    ///
    /// Called in a forked child; or no memory can be shared with a worker.
    pub fn receive(&self, time: Duration) -> Result<Option<Event>> {
        let next = || Ok(self.state().ok_or(Error::Inherited)?.events.pop_front());
        if let Some(event) = next()? {
            return Ok(Some(event));
        }
        self.listen(time)?;
        next()
    }

    /// Takes in what comes, waiting for it at most so long, and sends what waited.
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
        wait_for_any(&mut polled, time).map_err(|e| failed("hear from", e))?;
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

    /// Tells all workers that this is the end: what they send from now on is not read.
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

    /// Closes all links. Of workers that are gone, pages that no tensor needs go back to the system; in a
    /// forked child, nothing but its copies of the sockets is closed.
    pub fn close(&self) {
        let Some(mut state) = self.state() else {
            // the lock may be held by a thread that is not here
            let state = self.state.even_if_inherited().try_lock();
            drop(state.map(|mut state| std::mem::take(&mut *state)));
            return;
        };
        let mut state = std::mem::take(&mut *state);
        state.events.clear();
        state.links.iter_mut().for_each(Link::give_back);
    }

    /// Returns how many letters have come that are not received yet.
    pub fn ready(&self) -> Result<usize> {
        if self.state.get().is_none() {
            return Ok(0);
        }
        self.listen(Duration::ZERO)?;
        let state = self.state().ok_or(Error::Inherited)?;
        let letters = state.events.iter();
        Ok(letters.filter(|event| event.is_letter()).count())
    }

    /// Returns what the arenas hold now; in a forked child nothing.
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
    /// Returns the sockets to wait for, with their numbers and what for.
    fn sockets(&self) -> Vec<(usize, Arc<Socket>, PollFlags)> {
        let open = |(number, link): (usize, &Link)| {
            let socket = Arc::clone(link.socket.as_ref()?);
            let wanted = socket.wanted();
            Some((number, socket, wanted))
        };
        self.links.iter().enumerate().filter_map(open).collect()
    }

    /// Returns what tells that workers have ended which are not known to be gone, with their numbers.
    fn sentinels(&self) -> Vec<(usize, Arc<OwnedFd>)> {
        let watched = |(number, link): (usize, &Link)| {
            link.socket.as_ref()?;
            Some((number, Arc::clone(link.sentinel.as_ref()?)))
        };
        self.links.iter().enumerate().filter_map(watched).collect()
    }

    /// Takes in what a worker sent before it ended; half a letter is none.
    fn end(&mut self, number: usize) -> Result<()> {
        self.exchange(number)?;
        let link = self.links.get_mut(number);
        if link.is_some_and(|link| link.socket.take().is_some()) {
            self.events.push_back(Event::Gone(number));
        }
        Ok(())
    }

    /// Sends what waited at a link, and takes in all that came.
    fn exchange(&mut self, number: usize) -> Result<()> {
        let Some(link) = self.links.get_mut(number) else {
            return Ok(());
        };
        if let Some(socket) = &link.socket {
            flush(socket)?;
        }
        while let Some(socket) = link.socket.clone() {
            match socket.receive().map_err(|e| failed("hear from", e))? {
                Came::Nothing => break,
                Came::End => {
                    link.socket = None;
                    self.events.push_back(Event::Gone(number));
                }
                Came::Piece(Kind::Arena, piece, descriptor) => {
                    link.introduce(&piece, descriptor)?;
                }
                Came::Piece(Kind::Gone, piece, _) => link.forget(&piece)?,
                Came::Piece(Kind::More, piece, _) => link.begun.extend(piece),
                Came::Piece(Kind::Received, ..) => {} // the socket's own
                Came::Piece(Kind::Last, piece, _) => {
                    let mut bytes = std::mem::take(&mut link.begun);
                    bytes.extend(piece);
                    let letter =
                        decode(bytes, &link.arenas).map_err(|e| failed("read a message of", e))?;
                    self.events.push_back(Event::Letter(number, letter));
                }
            }
        }
        Ok(())
    }
}

impl Link {
    /// Gives memory back that no tensor needs: the worker is gone.
    fn give_back(&mut self) {
        for (_, arena) in self.arenas.drain() {
            for slot in 0..arena.slots() {
                arena.release(slot);
            }
        }
    }

    /// Maps an arena that the worker has made.
    fn introduce(&mut self, mut words: &[u8], descriptor: Option<OwnedFd>) -> Result<()> {
        let open = || -> std::io::Result<Arena> {
            let number = u32::from_le_bytes(take(&mut words)?);
            let slots = u32::from_le_bytes(take(&mut words)?) as usize;
            let slot_bytes = u64::from_le_bytes(take(&mut words)?) as usize;
            // the system drops what it has no number for
            let descriptor = descriptor.ok_or(rustix::io::Errno::MFILE)?;
            if !words.is_empty() {
                return Err(malformed());
            }
            Arena::open(descriptor, number, slot_bytes, slots)
        };
        let arena = open().map_err(|e| failed("share memory with", e))?;
        self.arenas.insert(arena.number(), Arc::new(arena));
        Ok(())
    }

    /// Lets go of an arena that the worker has no more, and in which nobody holds a slot.
    fn forget(&mut self, mut words: &[u8]) -> Result<()> {
        let number = take(&mut words).map_err(|e| failed("read a message of", e))?;
        self.arenas.remove(&u32::from_le_bytes(number));
        Ok(())
    }
}

/// Sends what waits at a socket, as long as there is room; nothing reaches a worker that is gone.
fn flush(socket: &Socket) -> Result<()> {
    socket.flush().map_err(|e| failed("talk to", e))?;
    Ok(())
}
