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
        let (path, file) = (self.path(at), self.file(at)?);
        self.stamps[at].check(&file, path)?;
        read_exact_at(&file, out, start).map_err(|source| Error::read(path, source))
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

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("files", &self.paths.len())
            .finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, start)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut start: u64) -> io::Result<()> {
    while !out.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, out, start)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (out, start) = (&mut out[read..], start + read as u64);
    }
    Ok(())
}
