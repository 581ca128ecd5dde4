//! Reads lines: neighbours together, and with one look at each file for a whole list of samples.
//!
//! Owns a window of a file for each thread. Invariant: a line is given only of a file that was as it was
//! indexed when the list was begun.

use std::cell::RefCell;
use std::ops::Range;

use super::super::Opened;
use super::Lines;
use crate::error::Result;
use crate::memory::fallible::{expect_room, resize};

/// As many bytes are read at once where lines are wanted one after the other.
const AHEAD: u64 = 64 << 10;
/// A thread gives larger windows back at once.
const SPARE_BYTES: usize = 4 << 20;
/// Files that a reader holds open at most.
const OPEN: usize = 16;

thread_local! {
    static WINDOW: RefCell<Window> = const { RefCell::new(Window::NONE) };
}

/// A part of a file, as a thread has read it.
struct Window {
    /// Of the lines; 0 of none.
    owner: usize,
    file: usize,
    start: u64,
    bytes: Vec<u8>,
    /// The line that would be the next one.
    next: usize,
}

impl Window {
    const NONE: Window = Window {
        owner: 0,
        file: 0,
        start: 0,
        bytes: Vec::new(),
        next: 0,
    };

    /// Where a part of the file is in the window.
    fn place(&self, owner: usize, file: usize, part: &Range<u64>) -> Option<Range<usize>> {
        let end = self.start + self.bytes.len() as u64;
        let holds = (self.owner, self.file) == (owner, file);
        (holds && self.start <= part.start && part.end <= end)
            .then(|| (part.start - self.start) as usize..(part.end - self.start) as usize)
    }
}

/// Reads the lines of one list of samples.
#[derive(Debug)]
pub struct Reader<'a> {
    lines: &'a Lines,
    /// Files that were as they should be, by their numbers.
    opened: Vec<(usize, Opened<'a>)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lines: &'a Lines) -> Reader<'a> {
        let opened = Vec::new();
        Reader { lines, opened }
    }

    /// Refuses the file of the line at `index`, which must be below [`Lines::len`], if it is not as it was.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`](crate::error::Error::Changed), [`Error::Read`](crate::error::Error::Read).
    pub fn check(&mut self, index: usize) -> Result<()> {
        self.file(self.lines.place(index).0).map(drop)
    }

    /// Calls `look` with the bytes of the line at `index`, which must be below [`Lines::len`], and with
    /// the space behind it; it must not ask for other lines.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`](crate::error::Error::Changed): the file is not as it was. [`Error::Read`](crate::error::Error::Read): it cannot be read.
    /// [`Error::Memory`](crate::error::Error::Memory): there is no room for the line, or for a string of it and a copy of that.
    pub fn with<T>(&mut self, index: usize, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let lines = self.lines;
        let (file, part) = lines.place(index);
        let opened = self.file(file)?;
        WINDOW.with_borrow_mut(|window| {
            if let Some(place) = window.place(lines.id, file, &part) {
                window.next = index + 1;
                return Ok(look(&window.bytes[place]));
            }
            let follows = window.owner == lines.id && window.next == index;
            let ahead = if follows { AHEAD } else { 0 };
            let end = part.end.max(part.start.saturating_add(ahead));
            let end = end.min(lines.files.stamp(file).len());
            window.owner = 0;
            let len = (end - part.start) as usize;
            let room = resize(&mut window.bytes, len)
                .and_then(|()| expect_room((part.end - part.start) as usize * 2));
            room.map_err(|error| error.of_file(lines.path(index)))?;
            opened.read(part.start, &mut window.bytes)?;
            (window.owner, window.file, window.start) = (lines.id, file, part.start);
            window.next = index + 1;
            let seen = look(&window.bytes[..(part.end - part.start) as usize]);
            if window.bytes.capacity() > SPARE_BYTES {
                (window.owner, window.bytes) = (0, Vec::new());
            }
            Ok(seen)
        })
    }

    /// Opens a file, unless that was done for an earlier line.
    fn file(&mut self, number: usize) -> Result<&Opened<'a>> {
        let known = self.opened.iter().position(|(at, _)| *at == number);
        let place = if let Some(place) = known {
            place
        } else {
            if self.opened.len() == OPEN {
                self.opened.clear();
            }
            self.opened.push((number, self.lines.files.open(number)?));
            self.opened.len() - 1
        };
        Ok(&self.opened[place].1)
    }
}
