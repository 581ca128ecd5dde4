//! Encoded bytes: a file for each sample, or all samples one after the other in one buffer.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Paths, Ragged};
use crate::error::{Error, Result};

/// Buffers that a thread keeps for the next sample.
const SPARE_BUFFERS: usize = 4;
/// Larger ones are given back at once.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Where encoded bytes are.
#[derive(Debug)]
pub struct Blobs(Storage);

#[derive(Debug)]
enum Storage {
    Files(Paths),
    Buffer(Ragged),
}

/// Where the bytes of one sample can be had again.
#[derive(Debug)]
pub enum Place {
    /// In a file of their own.
    File(PathBuf),
    /// Here.
    Memory(Vec<u8>),
}

impl Blobs {
    /// Takes files, which are read whole; nothing is opened yet.
    pub fn new(paths: Paths) -> Blobs {
        Blobs(Storage::Files(paths))
    }

    /// Takes a buffer; None unless it is single bytes in one block.
    pub fn buffer(buffer: Ragged) -> Option<Blobs> {
        buffer.is_bytes().then_some(Blobs(Storage::Buffer(buffer)))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Files(paths) => paths.len(),
            Storage::Buffer(buffer) => buffer.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file of the sample at `index`, which must be below [`Blobs::len`]; empty if it has none.
    pub fn path(&self, index: usize) -> &Path {
        match &self.0 {
            Storage::Files(paths) => paths.get(index),
            Storage::Buffer(_) => Path::new(""),
        }
    }

    /// Gives `bytes`, fetched at `index`, back to their thread, unless they are the only ones; tells
    /// where they can be had again.
    pub fn leave(&self, index: usize, bytes: Vec<u8>) -> Place {
        match &self.0 {
            Storage::Files(paths) => {
                Blobs::recycle(bytes);
                Place::File(paths.get(index).to_owned())
            }
            Storage::Buffer(_) => Place::Memory(bytes),
        }
    }

    /// Reads the bytes of the sample at `index`, which must be below [`Blobs::len`].
    pub fn fetch(&self, index: usize) -> Result<Vec<u8>> {
        let mut bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        bytes.clear();
        match &self.0 {
            Storage::Files(paths) => {
                let path = paths.get(index);
                let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
                read.map_err(|source| Error::Read {
                    path: path.to_owned(),
                    source,
                })?;
            }
            Storage::Buffer(buffer) => bytes.extend_from_slice(buffer.bytes(index)?),
        }
        Ok(bytes)
    }

    /// Gives the buffer of a sample back to its thread.
    pub fn recycle(bytes: Vec<u8>) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_BUFFERS && bytes.capacity() <= SPARE_BYTES {
                spare.push(bytes);
            }
        });
    }
}
