//! Files that contain many samples: few of them stay open, each is read at given offsets.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use super::Stamp;
use crate::error::{Error, Result};
use crate::fork::Renewed;
use crate::sync::{Arc, Mutex, lock};

/// Maximum of descriptors that a column keeps open, and of those that a list of samples holds.
const OPEN: usize = 64;

/// Open files and their numbers.
type Open = VecDeque<(usize, Arc<File>)>;

/// Files, with their stamps.
pub struct Files {
    paths: Paths,
    stamps: Vec<Stamp>,
    /// The files used last, the latest at the back. A forked child opens its own: another thread of the
    /// parent may exchange descriptors during the fork, so an inherited number may refer to another file.
    open: Renewed<Mutex<Open>>,
}

impl Files {
    /// Takes files and their stamps.
    ///
    /// # Panics
    ///
    /// If there are not as many of both.
    pub fn new(paths: Paths, stamps: Vec<Stamp>) -> Files {
        assert_eq!(paths.len(), stamps.len(), "each file has a stamp");
        Files {
            paths,
            stamps,
            open: Renewed::new(Mutex::default),
        }
    }

    /// Takes files as they are now; opens each once.
    ///
    /// # Errors
    ///
    /// [`Error::Read`]: one of them cannot be opened, or is no file.
    pub fn look(paths: Paths) -> Result<Files> {
        let stamp = |at| {
            let path = paths.get(at);
            let opened = open_regular(path).map_err(|source| Error::read(path, source));
            opened.map(|(_, stamp)| stamp)
        };
        let stamps = (0..paths.len()).map(stamp).collect::<Result<_>>()?;
        Ok(Files::new(paths, stamps))
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the path of the file `at`, which must be below [`Files::len`].
    pub fn path(&self, at: usize) -> &Path {
        self.paths.get(at)
    }

    /// Returns the stamp of the file `at`.
    pub fn stamp(&self, at: usize) -> Stamp {
        self.stamps[at]
    }

    /// Returns true if the file `at` has changed, or cannot be examined.
    pub fn has_changed(&self, at: usize) -> bool {
        self.stamps[at].differs(self.path(at))
    }

    /// Fills `out` with the bytes of the file `at` from `start` on.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]: the file has changed. [`Error::Read`]: it cannot be read.
    pub fn read(&self, at: usize, start: u64, out: &mut [u8]) -> Result<()> {
        self.open(at)?.read(start, out)
    }

    /// Opens the file `at`, to be read at several offsets.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`]: the file has changed. [`Error::Read`]: it cannot be opened.
    pub fn open(&self, at: usize) -> Result<Opened<'_>> {
        let (path, file) = (self.path(at), self.file(at)?);
        self.stamps[at].check(&file, path)?;
        Ok(Opened { path, file })
    }

    fn file(&self, at: usize) -> Result<Arc<File>> {
        let mut open = lock(self.open.get());
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
        let mut open = lock(self.open.get());
        if open.iter().all(|(number, _)| *number != at) {
            open.push_back((at, file.clone()));
        }
        let oldest = (open.len() > OPEN).then(|| open.pop_front());
        drop(open);
        drop(oldest); // closes it, unless another thread still reads
        Ok(file)
    }
}

/// A file that was unchanged when it was opened.
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

/// Files that were unchanged when they were opened for a list of samples, each once.
#[derive(Debug)]
pub(super) struct OpenedOnce<'a> {
    files: &'a Files,
    opened: Vec<(usize, Opened<'a>)>,
}

impl<'a> OpenedOnce<'a> {
    pub(super) fn new(files: &'a Files) -> OpenedOnce<'a> {
        let opened = Vec::new();
        OpenedOnce { files, opened }
    }

    /// Opens the file `at`, unless it is open.
    pub(super) fn file(&mut self, at: usize) -> Result<&Opened<'a>> {
        let known = self.opened.iter().position(|(number, _)| *number == at);
        let place = if let Some(place) = known {
            place
        } else {
            if self.opened.len() == OPEN {
                self.opened.clear();
            }
            self.opened.push((at, self.files.open(at)?));
            self.opened.len() - 1
        };
        Ok(&self.opened[place].1)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("files", &self.paths.len())
            .finish_non_exhaustive()
    }
}

/// Opens a file that is read at several offsets. Refuses folders, and pipes and devices, which it does not wait for.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, Stamp)> {
    let mut options = File::options();
    options.read(true);
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if !metadata.is_file() {
        let reason = "it is a pipe or a device, which cannot be read at offsets: copy it to a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok((file, Stamp::from(&metadata)))
}

/// Fills `out` with the bytes of a file from `start` on.
pub(super) fn read_exact_at(file: &File, out: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, start)
}

/// Many paths in two allocations, so that a million of them need little more memory than their bytes; clones share
/// them.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The bytes that `append` wrote, one path after the other.
    bytes: Arc<[u8]>,
    ends: Arc<[usize]>,
}

impl Paths {
    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the path at `index`, which must be below [`Paths::len`].
    pub fn get(&self, index: usize) -> &Path {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        path(&self.bytes[start..self.ends[index]])
    }
}

impl<S: AsRef<OsStr>> FromIterator<S> for Paths {
    fn from_iter<I: IntoIterator<Item = S>>(paths: I) -> Paths {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for path in paths {
            append(&mut bytes, path.as_ref());
            ends.push(bytes.len());
        }
        Paths {
            bytes: bytes.into(),
            ends: ends.into(),
        }
    }
}

/// Appends a path: any bytes but 0.
fn append(bytes: &mut Vec<u8>, path: &OsStr) {
    bytes.extend_from_slice(std::os::unix::ffi::OsStrExt::as_bytes(path));
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::fork::tests::in_child;
    use crate::whole_file::unguessable;

    /// Forks in the test; `FASTLOAD_TEST_FORKS` sets another number. With shared descriptors one in ten
    /// fails.
    const FORKS: usize = 200;
    const FILES: usize = 2 * OPEN;

    #[test]
    fn children_that_are_forked_at_any_moment_read_what_the_files_have() {
        let folder = std::env::temp_dir().join(format!("fastload-forks-{:016x}", unguessable()));
        std::fs::create_dir(&folder).unwrap();
        let path = |at| folder.join(format!("{at:02}"));
        for at in 0..FILES {
            std::fs::write(path(at), [at as u8; 64]).unwrap();
        }
        let paths = (0..FILES).map(path);
        let files = Files::look(paths.collect()).unwrap();
        let is_right = |at: usize| {
            let mut bytes = [0; 8];
            let read = files.read(at, 8, &mut bytes);
            read.is_ok() && bytes == [at as u8; 8]
        };
        let forks = std::env::var("FASTLOAD_TEST_FORKS");
        let forks = forks.map_or(FORKS, |count| count.parse().unwrap());
        let over = AtomicBool::new(false);
        let mut wrong = Vec::new();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let (over, is_right) = (&over, &is_right);
                scope.spawn(move || {
                    let order = (0..).map(|step| (first * 5 + step * 7) % FILES);
                    for at in order.take_while(|_| !over.load(Ordering::Relaxed)) {
                        assert!(is_right(at));
                    }
                });
            }
            for number in 0..forks {
                let all = || (0..FILES).all(|at| is_right((at + number) % FILES));
                let seen = in_child(|| u8::from(all()));
                if seen != Some(1) {
                    wrong.push((number, seen));
                    if wrong.len() == 3 {
                        break; // a child that hangs takes as long as its alarm
                    }
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        std::fs::remove_dir_all(folder).unwrap();
        assert!(wrong.is_empty(), "children and what they said: {wrong:?}");
    }
}
