//! Elements in files, without gaps; and documents of one file, which are ranges of any lengths.
//!
//! Owns the reading of ranges: neighbours with one call, each file checked once per batch, elements converted
//! on the way.

use std::cell::RefCell;
use std::path::Path;

use super::files::OpenedOnce;
use super::{Column, Files, Layout, Opened, Scratch};
use crate::collate::{Shape, sizes};
use crate::error::{Error, Result};
use crate::memory::fallible::resize;
use crate::memory::{Cast, Dtype};

/// Maximum of bytes that neighbours are read together in.
const RUN_BYTES: u64 = 1 << 20;
/// Maximum of memory that a thread keeps for unconverted elements, in bytes.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static RAW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Files of elements of one type.
#[derive(Debug)]
pub struct Flat {
    files: Files,
    dtype: Dtype,
    cast: Option<Cast>,
}

/// Ranges of one file, each beginning within the previous one or at its end.
struct Run {
    file: usize,
    /// Their first byte.
    start: u64,
    /// The byte after their last.
    stop: u64,
    /// One past the position of the last range.
    end: usize,
    /// True if no two ranges share bytes.
    is_apart: bool,
}

impl Flat {
    /// Takes files of `dtype` whose elements are converted to `to`; None if there is no such [`Cast`].
    pub fn new(files: Files, dtype: Dtype, to: Dtype) -> Option<Flat> {
        let cast = if to == dtype {
            None
        } else {
            Some(Cast::new(dtype, to)?)
        };
        Some(Flat { files, dtype, cast })
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the path of the file `at`, which must be below [`Flat::len`].
    pub fn path(&self, at: usize) -> &Path {
        self.files.path(at)
    }

    /// Returns the size of the file `at`, which must be below [`Flat::len`], in bytes.
    pub fn bytes(&self, at: usize) -> u64 {
        self.files.stamp(at).len()
    }

    /// Returns the type of the elements in the files.
    pub fn stored(&self) -> Dtype {
        self.dtype
    }

    /// Returns the type of the elements of a sample.
    pub fn dtype(&self) -> Dtype {
        self.cast.map_or(self.dtype, Cast::to)
    }

    /// Writes `count` ranges of `elements` each to `out`, one after the other. `place` returns the file of
    /// each range and its first byte; the range must lie within the file.
    pub(super) fn gather(
        &self,
        count: usize,
        elements: usize,
        place: impl Fn(usize) -> (usize, u64),
        out: &mut [u8],
    ) -> Result<()> {
        let bytes = elements * self.dtype.itemsize();
        let sample = elements * self.dtype().itemsize();
        if sample == 0 {
            return Ok(());
        }
        let mut open = OpenedOnce::new(&self.files);
        let mut first = 0;
        while first < count {
            let all = run(first, count, bytes as u64, &place);
            let mut read = |run: Run, first: usize| {
                let file = open.file(run.file)?;
                let out = &mut out[first * sample..run.end * sample];
                if self.cast.is_none() && run.is_apart {
                    return file.read(run.start, out);
                }
                let starts = (first..run.end).map(|at| (place(at).1 - run.start) as usize);
                self.convert(file, &run, starts, bytes, out)
            };
            let end = all.end;
            if read(all, first).is_err() {
                for at in first..end {
                    let one = run(at, at + 1, bytes as u64, &place);
                    read(one, at).map_err(|error| error.at(at))?; // which one it is
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Reads a run, and writes the ranges that begin at its `starts`.
    fn convert(
        &self,
        file: &Opened<'_>,
        run: &Run,
        starts: impl Iterator<Item = usize>,
        bytes: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let sample = bytes / self.dtype.itemsize() * self.dtype().itemsize();
        RAW.with_borrow_mut(|raw| {
            resize(raw, (run.stop - run.start) as usize)
                .map_err(|error| error.of_file(self.path(run.file)))?;
            file.read(run.start, raw)?;
            for (start, out) in starts.zip(out.chunks_exact_mut(sample)) {
                let range = &raw[start..start + bytes];
                match self.cast {
                    Some(cast) => cast.run(range, out),
                    None => out.copy_from_slice(range),
                }
            }
            if raw.capacity() > SPARE_BYTES {
                *raw = Vec::new();
            }
            Ok(())
        })
    }
}

/// Returns the ranges from `first` on that are read together.
fn run(first: usize, count: usize, bytes: u64, place: impl Fn(usize) -> (usize, u64)) -> Run {
    let (file, start) = place(first);
    let mut run = Run {
        file,
        start,
        stop: start + bytes,
        end: first + 1,
        is_apart: true,
    };
    let mut last = start;
    while run.end < count {
        let (other, next) = place(run.end);
        let follows = other == file && (last..=run.stop).contains(&next);
        if !follows || next + bytes - start > RUN_BYTES {
            break;
        }
        run.is_apart &= next == run.stop;
        (run.stop, run.end, last) = (next + bytes, run.end + 1, next);
    }
    run
}

/// Documents of one file.
#[derive(Debug)]
pub struct Documents {
    layout: Layout,
    flat: Flat,
    /// First byte of each document.
    starts: Vec<u64>,
    /// Number of elements of each document.
    lengths: Vec<u32>,
}

impl Documents {
    /// Takes one file, and the first byte and the number of elements of each document.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: a document exceeds the file.
    ///
    /// # Panics
    ///
    /// If `starts` and `lengths` differ in length.
    pub fn new(flat: Flat, starts: Vec<u64>, lengths: Vec<u32>) -> Result<Documents> {
        assert_eq!(starts.len(), lengths.len(), "each document has a length");
        let (bytes, itemsize) = (flat.bytes(0), flat.stored().itemsize() as u64);
        for (index, (&start, &length)) in starts.iter().zip(&lengths).enumerate() {
            let end = start.checked_add(u64::from(length) * itemsize);
            if end.is_none_or(|end| end > bytes) {
                let reason = format!(
                    "by its index, document {index} is {length} elements from byte {start} on, and \
                     the file has {bytes} bytes"
                );
                return Err(Error::decode(reason).of_file(flat.path(0)));
            }
        }
        Ok(Documents {
            layout: Layout::ragged(flat.dtype(), &[]),
            flat,
            starts,
            lengths,
        })
    }
}

impl Column for Documents {
    fn len(&self) -> usize {
        self.starts.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        Ok(Some(sizes(self.lengths[index] as usize, &[])))
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let elements = indices.first().map_or(0, |&index| self.lengths[index]);
        let place = |at: usize| (0, self.starts[indices[at]]);
        self.flat
            .gather(indices.len(), elements as usize, place, out)
    }
}
