//! Encoded bytes: a file for each sample, ranges of larger files, or one buffer for all.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::files::{open_regular, read_exact_at};
use super::{Column, Files, Paths, Ragged, Stamp};
use crate::error::{Error, Result};
use crate::memory::fallible::{missing, reserve, resize};
use crate::sync::Arc;

/// Buffers that a thread keeps for its next samples.
const SPARE_BUFFERS: usize = 4;
/// Larger buffers are freed at once.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The location of encoded bytes; clones share it.
#[derive(Clone, Debug)]
pub struct Blobs(Storage);

#[derive(Clone, Debug)]
enum Storage {
    /// Files, with their stamps once they are known; None for a file that could not be examined.
    Files(Paths, Option<Arc<[Option<Stamp>]>>),
    Spans(Spans),
    Buffer(Ragged),
}

/// The source from which the bytes of one sample can be read again.
#[derive(Debug)]
pub enum BlobSource {
    /// In its own file.
    File(PathBuf),
    /// In memory.
    Memory(Vec<u8>),
}

impl Blobs {
    /// The range of all bytes of a sample.
    pub const ALL: Range<u64> = 0..u64::MAX;

    /// Takes files, which are read whole; opens nothing yet.
    pub fn new(paths: Paths) -> Blobs {
        Blobs(Storage::Files(paths, None))
    }

    /// Takes ranges of larger files.
    pub fn spans(spans: Spans) -> Blobs {
        Blobs(Storage::Spans(spans))
    }

    /// Takes a buffer; None unless it consists of single bytes in one block.
    pub fn buffer(buffer: Ragged) -> Option<Blobs> {
        buffer.is_bytes().then_some(Blobs(Storage::Buffer(buffer)))
    }

    /// Adds the stamp of each file: files that have changed since are refused. A file that could not be
    /// examined has no stamp.
    ///
    /// # Panics
    ///
    /// If there are not as many stamps as samples.
    #[must_use]
    pub fn with_stamps(self, stamps: Vec<Option<Stamp>>) -> Blobs {
        assert_eq!(self.len(), stamps.len(), "each file has a stamp or none");
        match self.0 {
            Storage::Files(paths, _) => Blobs(Storage::Files(paths, Some(stamps.into()))),
            other => Blobs(other),
        }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Files(paths, _) => paths.len(),
            Storage::Spans(spans) => spans.len(),
            Storage::Buffer(buffer) => buffer.len(),
        }
    }

    /// Returns the file of the sample at `index`, which must be below [`Blobs::len`]; empty if it has none.
    pub fn path(&self, index: usize) -> &Path {
        match &self.0 {
            Storage::Files(paths, _) => paths.get(index),
            Storage::Spans(spans) => spans.path(index),
            Storage::Buffer(_) => Path::new(""),
        }
    }

    /// Returns where `bytes`, fetched at `index`, can be read again. Recycles the buffer if that is a file.
    pub fn leave(&self, index: usize, bytes: Vec<u8>) -> BlobSource {
        match &self.0 {
            Storage::Files(paths, _) => {
                Blobs::recycle(bytes);
                BlobSource::File(paths.get(index).to_owned())
            }
            Storage::Spans(_) | Storage::Buffer(_) => BlobSource::Memory(bytes),
        }
    }

    /// Reads a part of the bytes of the sample at `index`, which must be below [`Blobs::len`]; for
    /// [`Blobs::ALL`], all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Read`]: the system's error, or fewer bytes than requested. [`Error::Changed`].
    pub fn fetch(&self, index: usize, part: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = Blobs::spare();
        match &self.0 {
            Storage::Files(paths, stamps) => {
                let stamp = stamps.as_ref().and_then(|stamps| stamps[index]);
                read(paths.get(index), stamp, part, &mut bytes)?;
            }
            Storage::Spans(spans) => {
                let end = part.end.min(spans.bytes(index));
                spans.read(index, part.start..end, &mut bytes)?;
            }
            Storage::Buffer(buffer) => {
                let all = buffer.block(index)?;
                let end = part.end.min(all.len() as u64) as usize;
                let start = (part.start as usize).min(end);
                reserve(&mut bytes, end - start)?;
                bytes.extend_from_slice(&all[start..end]);
            }
        }
        Ok(bytes)
    }

    /// Opens the sample at `index`, which must be below [`Blobs::len`], to read parts of it.
    ///
    /// # Errors
    ///
    /// As [`Blobs::fetch`].
    pub fn look(&self, index: usize) -> Result<Look<'_>> {
        let path = self.path(index);
        let (file, stamp, len) = match &self.0 {
            Storage::Files(..) => {
                let opened = open_regular(path).map_err(|source| Error::read(path, source));
                let (file, stamp) = opened?;
                (Some(file), Some(stamp), stamp.len())
            }
            Storage::Spans(spans) => (None, None, spans.bytes(index)),
            Storage::Buffer(buffer) => (None, None, buffer.block(index)?.len() as u64),
        };
        Ok(Look {
            blobs: self,
            index,
            file,
            stamp,
            len,
        })
    }

    /// Returns an empty buffer, a recycled one if possible.
    pub fn spare() -> Vec<u8> {
        let mut bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// Keeps the buffer of a sample for reuse by its thread.
    pub fn recycle(bytes: Vec<u8>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_BUFFERS && bytes.capacity() <= SPARE_BYTES {
                spare.push(bytes);
            }
        });
    }
}

/// The bytes of one sample, to be read in parts.
#[derive(Debug)]
pub struct Look<'a> {
    blobs: &'a Blobs,
    index: usize,
    file: Option<File>,
    stamp: Option<Stamp>,
    len: u64,
}

impl Look<'_> {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the stamp of its own file; None without one.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Reads the bytes of `part`, as far as they exist.
    ///
    /// # Errors
    ///
    /// [`Error::Read`], [`Error::Changed`].
    pub fn read(&mut self, part: Range<u64>) -> Result<Vec<u8>> {
        let part = part.start.min(self.len)..part.end.min(self.len);
        let Some(file) = &self.file else {
            return self.blobs.fetch(self.index, part);
        };
        let mut bytes = Vec::new();
        take(
            file,
            self.len,
            part,
            &mut bytes,
            self.blobs.path(self.index),
        )?;
        Ok(bytes)
    }
}

/// A range of one file: a member of an archive, a line.
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

/// Reads a part of a file, which must not have changed.
fn read(path: &Path, stamp: Option<Stamp>, part: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
    let failed = |source| Error::read(path, source);
    let mut file = File::open(path).map_err(failed)?;
    if let Some(stamp) = stamp {
        stamp.check(&file, path)?;
    }
    if part == Blobs::ALL {
        let read = file.read_to_end(bytes).map(drop);
        return read.map_err(|error| match (error.kind(), file.metadata()) {
            (io::ErrorKind::OutOfMemory, Ok(it)) => missing(it.len() as usize).of_file(path),
            _ => failed(error),
        });
    }
    let len = match stamp {
        Some(stamp) => stamp.len(),
        None => file.metadata().map_err(failed)?.len(),
    };
    take(&file, len, part, bytes, path)
}

/// Reads the bytes of `part` of a file of `whole` bytes, all of them with one call.
fn take(file: &File, whole: u64, part: Range<u64>, bytes: &mut Vec<u8>, path: &Path) -> Result<()> {
    let failed = |source| Error::read(path, source);
    if part.end > whole {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    let len = part.end.saturating_sub(part.start) as usize;
    bytes.clear();
    resize(bytes, len).map_err(|error| error.of_file(path))?;
    read_exact_at(file, bytes, part.start).map_err(failed)
}
