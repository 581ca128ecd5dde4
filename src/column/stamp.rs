//! The state of a file when it was examined, by which later changes are detected.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};

/// Two changes this close together may have the same time: the resolution of the coarsest file systems (FAT).
const GRAIN: Duration = Duration::from_secs(2);

/// Size and time of the last change of a file, and whether it still has a name.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// False for a file that was deleted while it is open.
    is_linked: bool,
    /// Its inode number, if it was changed within [`GRAIN`] before it was examined. That of older files is
    /// not compared: file systems in user space may give the same file another number later.
    inode: Option<u64>,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        let modified = metadata.modified().ok();
        let is_old = modified.is_some_and(|time| time.elapsed().is_ok_and(|age| age > GRAIN));
        Stamp {
            len: metadata.len(),
            modified,
            is_linked: is_linked(metadata),
            inode: (!is_old).then(|| inode(metadata)),
        }
    }
}

impl Stamp {
    /// Returns the size of the file, in bytes.
    pub fn len(self) -> u64 {
        self.len
    }

    /// Returns the time of the last change, in nanoseconds since 1970; None if unknown.
    pub fn nanoseconds(self) -> Option<u64> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    }

    /// Returns true if the file at `path` has changed, or cannot be examined.
    pub fn differs(self, path: &Path) -> bool {
        path.metadata().map_or(true, |now| !self.is_of(&now))
    }

    /// Refuses an open file that has changed or was deleted.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]; [`Error::Read`]: it no longer exists, or cannot be examined.
    pub fn check(self, file: &File, path: &Path) -> Result<()> {
        let now = file
            .metadata()
            .map_err(|source| Error::read(path, source))?;
        if self.is_of(&now) {
            return Ok(());
        }
        if self.is_linked && !is_linked(&now) {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(Error::read(path, source));
        }
        Err(Error::Changed {
            path: path.to_owned(),
            then: self.len,
            now: now.len(),
        })
    }

    fn is_of(self, now: &Metadata) -> bool {
        self.len == now.len()
            && self.modified == now.modified().ok()
            && self.is_linked == is_linked(now)
            && self.inode.is_none_or(|inode_then| inode_then == inode(now))
    }
}

fn is_linked(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 0
}

fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::whole_file::unguessable;

    /// Replaces a file that was changed `age` ago by another of the same size and time; returns the result of
    /// a check.
    fn replaced(age: Duration) -> io::Result<Result<()>> {
        let name = format!("fastload-stamp-{:016x}", unguessable());
        let path = std::env::temp_dir().join(name);
        let other = path.with_extension("other");
        let changed = SystemTime::now() - age;
        let write = |path: &Path, content: &[u8]| {
            std::fs::write(path, content)?;
            let file = File::options().write(true).open(path)?;
            file.set_modified(changed)?;
            file.metadata().map(|metadata| Stamp::from(&metadata))
        };
        let stamp = write(&path, b"then")?;
        assert!(stamp.check(&File::open(&path)?, &path).is_ok());
        assert!(!stamp.differs(&path));
        write(&other, b"now!")?;
        std::fs::rename(&other, &path)?;
        let checked = stamp.check(&File::open(&path)?, &path);
        assert_eq!(stamp.differs(&path), checked.is_err());
        std::fs::remove_file(&path)?;
        assert!(stamp.differs(&path));
        Ok(checked)
    }

    #[test]
    fn a_file_replaced_within_the_grain_of_the_clock_has_changed() {
        let checked = replaced(Duration::ZERO).unwrap();
        assert!(
            matches!(
                checked,
                Err(Error::Changed {
                    then: 4,
                    now: 4,
                    ..
                })
            ),
            "{checked:?}"
        );
    }

    #[test]
    fn an_old_file_may_get_another_number() {
        assert!(replaced(Duration::from_secs(60)).unwrap().is_ok());
    }
}
