//! Files that many samples lie in: few of them stay open, each is read at given places.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use super::{Paths, Stamp};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, lock};

/// Descriptors that a column keeps at most.
const OPEN: usize = 16;

/// Files, as they were when they were looked at.
pub struct Files {
    paths: Paths,
    stamps: Vec<Stamp>,
    /// Those that were used last, the latest at the back.
    open: Mutex<VecDeque<(usize, Arc<File>)>>,
}

impl Files {
    /// Takes files and what each was like.
    ///
    /// # Panics
    ///
    /// When there are not as many of both.
    pub fn new(paths: Paths, stamps: Vec<Stamp>) -> Files {
        assert_eq!(paths.len(), stamps.len(), "each file has a stamp");
        Files {
            paths,
            stamps,
            open: Mutex::default(),
        }
    }

    /// Takes files as they are now; each is opened once.
    ///
    /// # Errors
    ///
    /// [`Error::Read`]: one of them cannot be.
    pub fn look(paths: Paths) -> Result<Files> {
        let stamp = |at| {
            let path = paths.get(at);
            let stamp = File::open(path).and_then(|file| Stamp::of(&file));
            stamp.map_err(|source| Error::read(path, source))
        };
        let stamps = (0..paths.len()).map(stamp).collect::<Result<_>>()?;
        Ok(Files::new(paths, stamps))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The path of the file `at`, which must be below [`Files::len`].
    pub fn path(&self, at: usize) -> &Path {
        self.paths.get(at)
    }

    /// What the file `at` was like.
    pub fn stamp(&self, at: usize) -> Stamp {
        self.stamps[at]
    }

    /// Whether the file `at` is not as it was, or cannot be looked at.
    pub fn has_changed(&self, at: usize) -> bool {
        Stamp::of_path(self.path(at)).ok() != Some(self.stamps[at])
    }

    /// Fills `out` with the bytes of the file `at` from `start` on.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]: the file is not as it was. [`Error::Read`]: it cannot be read.
    pub fn read(&self, at: usize, start: u64, out: &mut [u8]) -> Result<()> {
        self.open(at)?.read(start, out)
    }

    /// Opens the file `at`, to be read at several places.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]: the file is not as it was. [`Error::Read`]: it cannot be opened.
    pub fn open(&self, at: usize) -> Result<Opened<'_>> {
        let (path, file) = (self.path(at), self.file(at)?);
        self.stamps[at].check(&file, path)?;
        Ok(Opened { path, file })
    }

    fn file(&self, at: usize) -> Result<Arc<File>> {
        let mut open = lock(&self.open);
        if let Some(place) = open.iter().position(|(number, _)| *number == at) {
            if place + 1 < open.len()
                && let Some(used) = open.remove(place)
            {
                open.push_back(used);
            }
            if let Some((_, file)) = open.back() {
                return Ok(file.clone());
            }
        }
        drop(open);
        let path = self.path(at);
        let file = File::open(path).map_err(|source| Error::read(path, source))?;
        let file = Arc::new(file);
        let mut open = lock(&self.open);
        if open.iter().all(|(number, _)| *number != at) {
            open.push_back((at, file.clone()));
        }
        let oldest = (open.len() > OPEN).then(|| open.pop_front());
        drop(open);
        drop(oldest); // closes it, unless another thread still reads
        Ok(file)
    }
}

/// A file that was as it should be when it was opened.
#[derive(Debug)]
pub struct Opened<'a> {
    path: &'a Path,
    file: Arc<File>,
}

impl Opened<'_> {
    /// Fills `out` with the bytes from `start` on.
    ///
    /// # Errors
    ///
    /// [`Error::Read`].
    pub fn read(&self, start: u64, out: &mut [u8]) -> Result<()> {
        read_exact_at(&self.file, out, start).map_err(|source| Error::read(self.path, source))
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("files", &self.paths.len())
            .finish_non_exhaustive()
    }
}

/// Fills `out` with the bytes of a file from `start` on.
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, out: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, start)
}

/// Fills `out` with the bytes of a file from `start` on.
#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut out: &mut [u8], mut start: u64) -> io::Result<()> {
    while !out.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, out, start)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (out, start) = (&mut out[read..], start + read as u64);
    }
    Ok(())
}
