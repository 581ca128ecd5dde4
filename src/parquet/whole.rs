//! A column that fits the cache, as one array.

use once_cell::race::OnceBox;

use super::part::{Decoded, Part};
use crate::error::Result;
use crate::fork::Renewed;
use crate::sync::{Condvar, Mutex, lock};

/// The values of a column once all of them are decoded; until then, those that are.
#[derive(Debug)]
pub(super) struct Whole {
    /// A cell that nothing waits for: a forked child has the array whole, or not at all.
    decoded: OnceBox<Decoded>,
    filling: Renewed<Filling>,
}

#[derive(Debug, Default)]
struct Filling {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    begun: bool,
    parts: Vec<(usize, Part)>,
    /// The first row group that no thread has begun.
    next: usize,
    /// Row groups that are done.
    done: usize,
    bytes: usize,
    /// True if there will be no array: it does not fit, or a row group is damaged.
    refused: bool,
}

/// The row groups that a column is made of, and the account of its bytes.
pub(super) trait Parts {
    /// Number of row groups.
    fn count(&self) -> usize;

    /// Decodes a row group.
    fn decode_part(&self, part: usize) -> Result<Part>;

    /// Returns the estimated bytes of the array, from the metadata of the files.
    fn estimate(&self) -> usize;

    /// Has at least `bytes` counted; returns true if they fit.
    fn reserve(&self, bytes: usize) -> bool;

    /// Has exactly `bytes` counted, no more than before.
    fn settle(&self, bytes: usize);
}

impl Whole {
    pub(super) fn new() -> Whole {
        Whole {
            decoded: OnceBox::new(),
            filling: Renewed::new(Filling::default),
        }
    }

    /// Returns the array, if it is made.
    pub(super) fn peek(&self) -> Option<&Decoded> {
        self.decoded.get()
    }

    /// Returns the array. Threads that ask for it first decode it together, one row group each at a time.
    /// None: the column has none.
    pub(super) fn get(&self, parts: &impl Parts) -> Option<&Decoded> {
        if let Some(decoded) = self.decoded.get() {
            return Some(decoded);
        }
        if parts.count() == 0 {
            return None;
        }
        let filling = self.filling.get();
        let mut state = lock(&filling.state);
        if !state.begun {
            state.begun = true;
            state.refused = !parts.reserve(parts.estimate());
        }
        loop {
            if let Some(decoded) = self.decoded.get() {
                return Some(decoded);
            }
            if state.refused {
                return None;
            }
            if state.next == parts.count() {
                let waited = filling.changed.wait(state);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            }
            let number = state.next;
            state.next += 1;
            drop(state);
            let part = parts.decode_part(number);
            state = lock(&filling.state);
            state.add(number, part, parts);
            if state.done == parts.count() && !state.refused {
                let mut all = std::mem::take(&mut state.parts);
                drop(state);
                all.sort_unstable_by_key(|(number, _)| *number);
                let made = self.set(all.into_iter().map(|(_, part)| part).collect(), parts);
                state = lock(&filling.state);
                state.refused = made.is_none();
            }
            filling.changed.notify_all();
        }
    }

    fn set(&self, all: Vec<Part>, parts: &impl Parts) -> Option<()> {
        let joined = Part::join(all)?;
        parts.settle(joined.bytes());
        self.decoded.set(Box::new(joined.decoded().ok()?)).ok()
    }
}

impl State {
    fn add(&mut self, number: usize, part: Result<Part>, parts: &impl Parts) {
        self.done += 1;
        match part {
            Ok(part) => {
                self.bytes += part.bytes();
                self.parts.push((number, part));
                self.refused |= !parts.reserve(self.bytes);
            }
            Err(_) => self.refused = true, // raised again by each sample that is asked for
        }
        if self.refused {
            self.parts = Vec::new();
            parts.settle(0);
        }
    }
}
