//! What a file was like when it was looked at: how a change since then is noticed.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Error, Result};

/// Size and time of the last change of a file, and whether it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Whether a directory has it: not so of a file that is deleted while it is open.
    is_linked: bool,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        Stamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            is_linked: is_linked(metadata),
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

    /// When it was changed last, in nanoseconds since 1970; None where that is not known.
    pub fn nanoseconds(self) -> Option<u64> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    }

    /// Whether the file was empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Refuses an open file that is not as it was, or was deleted meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]; [`Error::Read`]: it is no longer there, or cannot be looked at.
    pub fn check(self, file: &File, path: &Path) -> Result<()> {
        let now = Stamp::of(file).map_err(|source| Error::read(path, source))?;
        if now == self {
            return Ok(());
        }
        if self.is_linked && !now.is_linked {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(Error::read(path, source));
        }
        Err(Error::Changed {
            path: path.to_owned(),
            then: self.len,
            now: now.len,
        })
    }
}

#[cfg(unix)]
fn is_linked(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 0
}

#[cfg(not(unix))]
fn is_linked(_metadata: &Metadata) -> bool {
    true
}
