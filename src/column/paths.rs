//! Many file paths in two allocations, so that a million of them need little more memory than their bytes.

use std::ffi::OsStr;
use std::path::Path;

use crate::sync::Arc;

/// A list of paths; clones share it.
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

/// Appends a path. On Unix it is any bytes but 0.
#[cfg(unix)]
fn append(bytes: &mut Vec<u8>, path: &OsStr) {
    bytes.extend_from_slice(std::os::unix::ffi::OsStrExt::as_bytes(path));
}

/// Appends a path, with U+FFFD in place of bytes that are not Unicode.
#[cfg(not(unix))]
fn append(bytes: &mut Vec<u8>, path: &OsStr) {
    bytes.extend_from_slice(path.to_string_lossy().as_bytes());
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> &Path {
    Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> &Path {
    Path::new(std::str::from_utf8(bytes).unwrap_or_default())
}
