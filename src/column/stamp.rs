//! What a file was like when it was looked at: how a change since then is noticed.

use std::fs::File;
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

impl Stamp {
    /// Looks at an open file.
    pub fn of(file: &File) -> io::Result<Stamp> {
        let metadata = file.metadata()?;
        Ok(Stamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
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
