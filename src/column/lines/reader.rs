//! Reads lines: neighbours with one call, and each file checked once for a whole list of samples.
//!
//! Owns a read-ahead buffer for each thread. Invariant: a line is only returned from a file that was
//! unchanged since it was indexed when the list was begun.

use std::cell::RefCell;
use std::ops::Range;

use super::Lines;
use crate::column::files::OpenedOnce;
use crate::error::Result;
use crate::memory::fallible::{expect_room, resize};

/// Bytes to read at once where lines are read in sequence.
const AHEAD: u64 = 64 << 10;
/// Larger buffers are freed at once.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static READ_AHEAD: RefCell<ReadAhead> = const { RefCell::new(ReadAhead::NONE) };
}

/// A part of a file, read by a thread.
struct ReadAhead {
    /// The id of the lines; 0 for none.
    owner: usize,
    file: usize,
    start: u64,
    bytes: Vec<u8>,
    /// The line that would follow in sequence.
    next: usize,
}

impl ReadAhead {
    const NONE: ReadAhead = ReadAhead {
        owner: 0,
        file: 0,
        start: 0,
        bytes: Vec::new(),
        next: 0,
    };

    /// Returns the range of a part of the file in the buffer.
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
    opened: OpenedOnce<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lines: &'a Lines) -> Reader<'a> {
        let opened = OpenedOnce::new(&lines.files);
        Reader { lines, opened }
    }

    /// Refuses the file of the line at `index`, which must be below [`Lines::len`], if it has changed.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`](crate::error::Error::Changed), [`Error::Read`](crate::error::Error::Read).
    pub fn check(&mut self, index: usize) -> Result<()> {
        self.opened.file(self.lines.place(index).0).map(drop)
    }

    /// Calls `look` with the bytes of the line at `index`, which must be below [`Lines::len`], trailing space
    /// included; `look` must not read other lines.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`](crate::error::Error::Changed): the file is not as it was. [`Error::Read`](crate::error::Error::Read): it cannot be read.
    /// [`Error::Memory`](crate::error::Error::Memory): there is no room for the line, or for a string of it and a copy of that.
    pub fn with<T>(&mut self, index: usize, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let lines = self.lines;
        let (file, part) = lines.place(index);
        let opened = self.opened.file(file)?;
        READ_AHEAD.with_borrow_mut(|window| {
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
}
