//! Arrays of one shape at equal distances, in one file after the other: records of binary files, and windows of
//! files of tokens.

use super::{Column, Flat, Layout, Scratch};
use crate::error::{Error, Result};

/// See the module's documentation.
#[derive(Debug)]
pub struct Strided {
    flat: Flat,
    layout: Layout,
    /// Elements of a sample.
    elements: usize,
    /// Bytes from the start of one sample to the next.
    stride: u64,
    /// The first byte of a file's first sample.
    first: u64,
    /// Number of samples in each file and all before it.
    ends: Vec<usize>,
}

impl Strided {
    /// Takes files that begin with a header of `offset` bytes, and then are records of `stride` bytes: of each,
    /// the array of `shape` that begins at its byte `start`.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: after its header, the size of a file is not a multiple of that of a record.
    /// [`Error::Transform`]: the array does not fit into a record.
    pub fn records(
        flat: Flat,
        shape: &[usize],
        stride: u64,
        start: u64,
        offset: u64,
    ) -> Result<Strided> {
        let itemsize = flat.stored().itemsize();
        let bytes = shape
            .iter()
            .try_fold(itemsize, |all: usize, &n| all.checked_mul(n));
        let end = bytes.and_then(|bytes| start.checked_add(bytes as u64));
        if end.is_none_or(|end| end > stride) || stride == 0 {
            return Err(Error::transform(
                format!(
                    "take an array of shape {shape:?} and dtype {} from byte {start} of records",
                    flat.stored().name()
                ),
                format!("a record has {stride} bytes"),
            ));
        }
        let first = offset.saturating_add(start); // overflows only if there is no record
        Strided::new(flat, shape, stride, first, |bytes| {
            let all = bytes.checked_sub(offset);
            let all = all.filter(|all| all % stride == 0).ok_or_else(|| {
                format!(
                    "it has {bytes} bytes, which are not a header of {offset} and records of {stride} each"
                )
            })?;
            Ok((all / stride) as usize)
        })
    }

    /// Takes files of tokens: their windows of `length` elements, which begin every `stride` elements from the byte
    /// `offset` on; both are at least 1. None crosses into the next file, and a rest at the end of a file is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: the size of a file is not a multiple of the element size, or `offset` is past its
    /// end.
    pub fn windows(flat: Flat, length: usize, stride: usize, offset: u64) -> Result<Strided> {
        let stored = flat.stored();
        let itemsize = stored.itemsize() as u64;
        let distance = itemsize.saturating_mul(stride as u64); // overflows only if there is no second window
        Strided::new(flat, &[length], distance, offset, |all| {
            let bytes = all.checked_sub(offset).ok_or_else(|| {
                format!("it has {all} bytes, and the first window begins at {offset}")
            })?;
            if bytes % itemsize != 0 {
                return Err(format!(
                    "{bytes} bytes are not a multiple of the {itemsize} bytes of {}; pass another dtype, or \
                     offset= to skip a header",
                    stored.name()
                ));
            }
            let rest = (bytes / itemsize).checked_sub(length as u64);
            Ok(rest.map_or(0, |rest| (rest / stride as u64) as usize + 1))
        })
    }

    /// Counts the samples of each file with `count`, from its number of bytes.
    fn new(
        flat: Flat,
        shape: &[usize],
        stride: u64,
        first: u64,
        count: impl Fn(u64) -> std::result::Result<usize, String>,
    ) -> Result<Strided> {
        let mut samples = 0;
        let ends = (0..flat.len()).map(|at| {
            let found = count(flat.bytes(at));
            samples += found.map_err(|reason| Error::decode(reason).of_file(flat.path(at)))?;
            Ok(samples)
        });
        Ok(Strided {
            ends: ends.collect::<Result<_>>()?,
            layout: Layout::rows(flat.dtype(), shape),
            elements: shape.iter().product(),
            stride,
            first,
            flat,
        })
    }
}

impl Column for Strided {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let place = |at: usize| {
            let index = indices[at];
            let file = self.ends.partition_point(|&end| end <= index);
            let before = file.checked_sub(1).map_or(0, |file| self.ends[file]);
            (file, self.first + (index - before) as u64 * self.stride)
        };
        self.flat.gather(indices.len(), self.elements, place, out)
    }
}
