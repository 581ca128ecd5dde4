//! The files of one sample, read but not decoded.

use crate::column::Blob;

/// The files of a sample.
#[derive(Debug, Default)]
pub struct Fetched {
    /// The first leaf that is still to be made.
    pub(super) first: usize,
    /// One entry for each leaf with files, from that one on.
    pub(super) blobs: Vec<Blob>,
}

impl Fetched {
    /// Returns the number of bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.blobs.iter().map(|blob| match blob {
            Blob::Encoded(bytes) => bytes.len(),
            Blob::Decoded(frame) => frame.pixels().len(),
        });
        bytes.sum()
    }
}
