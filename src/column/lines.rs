//! The lines of large files: an index of their offsets, and their bytes.
//!
//! Owns the index, one number per line; a [`Reader`] reads them. Lines end with `\n`. Lines of only spaces,
//! tabs and `\r` do not count, and a byte order mark at the beginning of a file is not part of its first
//! line. Invariant: a line is only read from a file that is unchanged since it was indexed.

mod index;
mod reader;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Files, Paths};
use crate::error::Result;
use crate::scan::scan;
use crate::sync::Arc;
use index::Piece;
pub use reader::Reader;

/// Bytes that are scanned at once.
const PIECE: u64 = 1 << 20;
/// The byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines of files, one file after the other.
#[derive(Debug)]
pub struct Lines {
    /// Unique in the process.
    id: usize,
    files: Arc<Files>,
    starts: Vec<Starts>,
    /// Number of the first line of each file, then of all lines.
    firsts: Vec<usize>,
}

/// The offsets of the lines of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Starts {
    /// The first byte of each line that is not a space.
    lines: Vec<u64>,
    /// Number of `\n` before each piece of [`PIECE`] bytes.
    before: Vec<u64>,
}

impl Lines {
    /// Indexes the lines of files on pool threads. `tick` receives the number of scanned pieces and their
    /// total.
    ///
    /// `stored` are index files, one for each file, or none. Those that match their file are used; the others
    /// are written.
    ///
    /// # Errors
    ///
    /// [`Error::Read`](crate::Error::Read): a file cannot be read, or its index cannot be written;
    /// [`Error::Changed`](crate::Error::Changed): it changed meanwhile; those of [`scan`].
    pub fn open(
        paths: Paths,
        stored: &[std::path::PathBuf],
        tick: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<Lines> {
        static IDS: AtomicUsize = AtomicUsize::new(1);
        let files = Arc::new(Files::look(paths)?);
        let known = (0..files.len()).map(|at| index::read(stored.get(at)?, files.stamp(at)));
        let starts = Lines::find(&files, known.collect(), stored, tick)?;
        let mut firsts = vec![0];
        for starts in &starts {
            firsts.push(firsts[firsts.len() - 1] + starts.lines.len());
        }
        Ok(Lines {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            files,
            starts,
            firsts,
        })
    }

    /// Scans those files that are not `known`.
    fn find(
        files: &Arc<Files>,
        known: Vec<Option<Starts>>,
        stored: &[std::path::PathBuf],
        tick: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<Vec<Starts>> {
        let pieces = known
            .iter()
            .enumerate()
            .filter(|(_, known)| known.is_none());
        let pieces = pieces.flat_map(|(at, _)| {
            let count = files.stamp(at).len().div_ceil(PIECE);
            (0..count).map(move |piece| (at, piece * PIECE))
        });
        let pieces: Arc<[(usize, u64)]> = pieces.collect();
        let (total, all, places) = (pieces.len(), files.clone(), pieces.clone());
        let look = move |number: usize| {
            let (at, start) = places[number];
            Piece::read(&all, at, start..all.stamp(at).len().min(start + PIECE))
        };
        let mut found = scan(total, look, &mut |done| tick(done, total))?.into_iter();
        let mut starts = Vec::new();
        for (at, known) in known.into_iter().enumerate() {
            if let Some(known) = known {
                starts.push(known);
                continue;
            }
            let count = files.stamp(at).len().div_ceil(PIECE) as usize;
            let own: Result<Vec<Piece>> = found.by_ref().take(count).collect();
            let joined = index::join(own?).map_err(|error| error.of_file(files.path(at)))?;
            starts.push(joined);
            if let (Some(path), Some(starts)) = (stored.get(at), starts.last()) {
                index::write(path, files.stamp(at), starts)?;
            }
        }
        Ok(starts)
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Returns the files.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// Returns the file of the line at `index`, which must be below [`Lines::len`], and the line's byte
    /// range, with trailing space.
    pub fn place(&self, index: usize) -> (usize, Range<u64>) {
        let file = self.firsts.partition_point(|&first| first <= index) - 1;
        let (lines, at) = (&self.starts[file].lines, index - self.firsts[file]);
        let end = lines.get(at + 1).copied();
        (
            file,
            lines[at]..end.unwrap_or_else(|| self.files.stamp(file).len()),
        )
    }

    /// Returns the path of the file of the line at `index`, which must be below [`Lines::len`].
    pub fn path(&self, index: usize) -> &Path {
        self.files.path(self.place(index).0)
    }

    /// Returns the number of the line at `index`, which must be below [`Lines::len`], in its file; the first
    /// is 1, and empty lines count.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`](crate::Error::Changed), [`Error::Read`](crate::Error::Read): the file has changed, or cannot
    /// be read.
    pub fn number(&self, index: usize) -> Result<u64> {
        let (file, place) = self.place(index);
        let piece = place.start / PIECE;
        let mut bytes = vec![0; (place.start - piece * PIECE) as usize];
        self.files.read(file, piece * PIECE, &mut bytes)?;
        let ends = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Ok(self.starts[file].before[piece as usize] + ends + 1)
    }

    /// Returns a reader for the lines of one list of samples.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }
}
