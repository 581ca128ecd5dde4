//! Encoded bytes, one file for each sample.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::Paths;
use crate::error::{Error, Result};

/// Buffers that a thread keeps for the next file.
const SPARE_BUFFERS: usize = 4;
/// Larger ones are given back at once.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Files that are read whole.
#[derive(Debug)]
pub struct Blobs {
    paths: Paths,
}

impl Blobs {
    /// Makes the column; nothing is opened yet.
    pub fn new(paths: Paths) -> Blobs {
        Blobs { paths }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The path of the file at `index`, which must be below [`Blobs::len`].
    pub fn path(&self, index: usize) -> &Path {
        self.paths.get(index)
    }

    /// Reads the file at `index`, which must be below [`Blobs::len`].
    pub fn fetch(&self, index: usize) -> Result<Vec<u8>> {
        let path = self.path(index);
        let mut bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        bytes.clear();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Ok(bytes)
    }

    /// Gives the buffer of a file back to its thread.
    pub fn recycle(bytes: Vec<u8>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_BUFFERS && bytes.capacity() <= SPARE_BYTES {
                spare.push(bytes);
            }
        });
    }
}
