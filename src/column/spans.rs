//! Samples that are ranges of larger files: members of archives, lines, windows.

use std::ops::Range;
use std::path::Path;

use super::Files;
use crate::error::{Error, Result};
use crate::memory::fallible::resize;
use crate::sync::Arc;

/// A range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the file.
    pub file: u32,
    /// Its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Ranges of files.
#[derive(Clone, Debug)]
pub struct Spans {
    files: Arc<Files>,
    spans: Arc<[Span]>,
}

impl Spans {
    /// Takes ranges of `files`; None if one of them exceeds its file.
    pub fn new(files: Arc<Files>, spans: Arc<[Span]>) -> Option<Spans> {
        let fits = |span: &Span| {
            let end = span.start.checked_add(span.len);
            let file = span.file as usize;
            file < files.len() && end.is_some_and(|end| end <= files.stamp(file).len())
        };
        spans.iter().all(fits).then_some(Spans { files, spans })
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the file of the range at `index`, which must be below [`Spans::len`].
    pub fn path(&self, index: usize) -> &Path {
        self.files.path(self.spans[index].file as usize)
    }

    /// Returns the bytes of the range at `index`, which must be below [`Spans::len`].
    pub fn bytes(&self, index: usize) -> u64 {
        self.spans[index].len
    }

    /// Reads `part` of the range at `index`, which must be below [`Spans::len`], to `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]: the file has changed. [`Error::Read`]: it cannot be read, or `part` exceeds the
    /// range.
    pub fn read(&self, index: usize, part: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let span = self.spans[index];
        let len = part.end.saturating_sub(part.start);
        if part.end > span.len {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(Error::read(self.path(index), source));
        }
        resize(bytes, len as usize).map_err(|error| error.of_file(self.path(index)))?;
        self.files
            .read(span.file as usize, span.start + part.start, bytes)
    }
}
