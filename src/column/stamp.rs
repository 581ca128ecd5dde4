//! What a file was like when it was looked at: how a change since then is noticed.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Error, Result};

/// Size and time of the last change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        Stamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl Stamp {
    /// Looks at an open file.
    pub fn of(file: &File) -> io::Result<Stamp> {
        Ok(Stamp::from(&file.metadata()?))
    }

    /// Looks at a file by its path.
    pub fn of_path(path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::from(&path.metadata()?))
    }

    /// Bytes of the file.
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether the file was empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Refuses a file that is not as it was.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]; [`Error::Read`]: it cannot be looked at.
    pub fn check(self, file: &File, path: &Path) -> Result<()> {
        let now = Stamp::of(file).map_err(|source| Error::read(path, source))?;
        if now == self {
            return Ok(());
        }
        Err(Error::Changed {
            path: path.to_owned(),
            then: self.len,
            now: now.len,
        })
    }
}
