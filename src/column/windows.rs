//! Windows of files of tokens.

use super::{Column, Flat, Layout, Scratch};
use crate::error::{Error, Result};

/// Windows of one length at equal distances, in one file after the other; none crosses into the next file.
#[derive(Debug)]
pub struct Windows {
    flat: Flat,
    /// Elements of a window.
    layout: Layout,
    length: usize,
    /// Bytes from the start of one window to the next.
    stride: u64,
    /// Bytes of each file before its first window.
    offset: u64,
    /// Number of windows in each file and all before it.
    ends: Vec<usize>,
}

impl Windows {
    /// Takes files; `length` and `stride` are in elements and at least 1, `offset` is in bytes. A rest at the
    /// end of a file is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: the size of a file is not a multiple of the element size, or `offset` is past its
    /// end.
    pub fn new(flat: Flat, length: usize, stride: usize, offset: u64) -> Result<Windows> {
        let itemsize = flat.stored().itemsize() as u64;
        let mut windows = 0;
        let mut ends = Vec::with_capacity(flat.len());
        for at in 0..flat.len() {
            let refuse = |reason| Error::decode(reason).of_file(flat.path(at));
            let bytes = flat.bytes(at).checked_sub(offset).ok_or_else(|| {
                let bytes = flat.bytes(at);
                refuse(format!(
                    "it has {bytes} bytes, and the first window begins at {offset}"
                ))
            })?;
            if bytes % itemsize != 0 {
                let dtype = flat.stored().name();
                return Err(refuse(format!(
                    "{bytes} bytes are not a multiple of the {itemsize} bytes of {dtype}; pass another dtype, or \
                     offset= to skip a header"
                )));
            }
            if let Some(rest) = (bytes / itemsize).checked_sub(length as u64) {
                windows += (rest / stride as u64) as usize + 1;
            }
            ends.push(windows);
        }
        Ok(Windows {
            layout: Layout::rows(flat.dtype(), &[length]),
            flat,
            length,
            stride: itemsize.saturating_mul(stride as u64), // overflows only if there is no second window
            offset,
            ends,
        })
    }

    /// Returns the file of a window, and its first byte.
    fn place(&self, index: usize) -> (usize, u64) {
        let file = self.ends.partition_point(|&end| end <= index);
        let before = if file == 0 { 0 } else { self.ends[file - 1] };
        (file, self.offset + (index - before) as u64 * self.stride)
    }
}

impl Column for Windows {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let place = |at: usize| self.place(indices[at]);
        self.flat.gather(indices.len(), self.length, place, out)
    }
}
