//! Atomic writes of files: completely or not at all.
//!
//! Owns the procedure: a new file next to the old one, under an unguessable name, then a rename. Readers see the
//! old file or the new one, even with several writers. Invariant: an existing file or link under the new file's
//! name is neither written to nor followed, and a failed write leaves nothing behind.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{ErrorKind, Result, Write};
use std::path::Path;

/// Returns an unguessable number, a new one each time.
///
/// Forked processes share the random keys: the process id makes their numbers differ.
pub(crate) fn unguessable() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Replaces the file at `path`, or the one that it links to, by one of `bytes`. Something else there, such as a
/// terminal, is written to.
///
/// # Errors
///
/// The system's error of the first step that failed; `path` is unchanged.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(&target, bytes);
    }
    let (file, new) = loop {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{:016x}", unguessable()));
        match File::create_new(&name) {
            Ok(file) => break (file, name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    let written = fill(file, bytes).and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        let _ = fs::remove_file(&new); // the first error is the one to tell
    }
    written
}

/// Writes a file, and waits until the system has it: some file systems say only then that they are full.
fn fill(mut file: File, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let names = entries.map(|entry| {
            entry
                .expect("a file")
                .file_name()
                .into_string()
                .expect("letters")
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let made = std::env::temp_dir().join(format!("fastload-{name}-{:016x}", unguessable()));
        fs::create_dir(&made).expect("a folder");
        made
    }

    #[test]
    fn writers_at_once_leave_one_whole_file() {
        let folder = folder("writers");
        let path = folder.join("index");
        std::thread::scope(|scope| {
            for letter in b'a'..b'e' {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write(path, &[letter; 5000]).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let Ok(seen) = fs::read(&path) else { continue };
                assert_eq!(seen.len(), 5000);
                assert!(seen.iter().all(|letter| *letter == seen[0]));
            }
        });
        assert_eq!(names(&folder), ["index"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_is_left_of_what_fails() {
        let folder = folder("failures");
        let path = folder.join("index");
        fs::create_dir_all(path.join("full")).unwrap(); // which no file takes the place of
        assert!(write(&path, b"bytes").is_err());
        assert_eq!(names(&folder), ["index"]);
        assert!(write(&folder.join("none/index"), b"bytes").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_differ() {
        assert_ne!(unguessable(), unguessable());
    }
}
