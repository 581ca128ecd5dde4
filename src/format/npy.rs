//! NumPy's `.npy`: a header with dtype, order and shape, then the elements.
//!
//! Versions 1.0, 2.0 and 3.0 of the format as `numpy/lib/format.py` documents it. Numbers and booleans of
//! either byte order, in C or Fortran order; samples come out in C order and native byte order. Refuses
//! dtypes without a tensor: objects, text, dates, records, extended precision.

mod literal;

use std::ops::Range;

use super::header::one_dtype;
use super::{Array, Header, Shapes, Target, headers, order};
use crate::column::{Blobs, Look};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use literal::Literal;

/// The magic bytes of all files.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes of the first read: NumPy writes headers of 128 bytes or 64 more.
const FIRST_BYTES: u64 = 256;
/// Maximum size of a header; NumPy's own limit, `max_header_size`.
const LONGEST: u64 = 10_000;
/// NumPy's own limit, `NPY_MAXDIMS`.
const MOST_DIMENSIONS: usize = 64;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Byte offset of the elements.
    pub start: u64,
    /// Their type.
    pub dtype: Dtype,
    /// True if their byte order is not this machine's.
    pub swapped: bool,
    /// True if the first dimension varies fastest.
    pub fortran: bool,
    /// Shape of the array.
    pub shape: Vec<usize>,
}

impl Layout {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: not a `.npy` file, or one whose elements a tensor cannot hold.
    fn read(look: &mut Look<'_>) -> Result<Layout> {
        Layout::read_of(look.len(), |part| look.read(part))
    }

    /// Reads the header of an array of `whole` bytes, header included. `read` returns a range of them, as far
    /// as they exist.
    ///
    /// # Errors
    ///
    /// As [`Layout::read`], and those of `read`.
    pub(super) fn read_of(
        whole: u64,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<Layout> {
        let head = read(0..FIRST_BYTES)?;
        if head.get(..6) != Some(MAGIC) {
            return Err(Error::decode(
                "it is not a .npy file: its first bytes differ",
            ));
        }
        let cut = || Error::decode("its header is truncated");
        let &[major, minor, a, b, c, d] = head
            .get(6..)
            .and_then(<[u8]>::first_chunk)
            .ok_or_else(cut)?;
        let (begin, len) = match (major, minor) {
            (1, 0) => (10, u64::from(u16::from_le_bytes([a, b]))),
            (2 | 3, 0) => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
            _ => {
                let reason = format!("version {major}.{minor} of the .npy format is unknown");
                return Err(Error::decode(reason));
            }
        };
        if len > LONGEST {
            let reason = format!("its header has {len} bytes; at most {LONGEST} are supported");
            return Err(Error::decode(reason));
        }
        let start = begin + len;
        let text = read(begin..start)?;
        if (text.len() as u64) < len {
            return Err(cut());
        }
        Layout::parse(&text, start)?.within(whole)
    }

    fn parse(text: &[u8], start: u64) -> Result<Layout> {
        let entries = Literal::parse_dict(text).ok_or_else(|| {
            Error::decode("its header is not a dictionary of 'descr', 'fortran_order' and 'shape'")
        })?;
        let missing = |key| Error::decode(format!("its header has no valid {key:?}"));
        let find = |key| {
            entries
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value)
        };
        let (dtype, swapped) = match find("descr") {
            Some(Literal::Text(descr)) => dtype(descr)?,
            Some(Literal::Other) => {
                return Err(Error::decode(
                    "its elements are records; a tensor holds numbers",
                ));
            }
            _ => return Err(missing("descr")),
        };
        let Some(Literal::Bool(fortran)) = find("fortran_order") else {
            return Err(missing("fortran_order"));
        };
        let Some(Literal::Sizes(shape)) = find("shape") else {
            return Err(missing("shape"));
        };
        if shape.len() > MOST_DIMENSIONS {
            let reason = format!(
                "it has {} dimensions; NumPy has at most {MOST_DIMENSIONS}",
                shape.len()
            );
            return Err(Error::decode(reason));
        }
        Ok(Layout {
            start,
            dtype,
            swapped,
            fortran: *fortran,
            shape: shape.clone(),
        })
    }

    /// Refuses a file of `len` bytes that is too short for its elements.
    fn within(self, len: u64) -> Result<Layout> {
        let bytes = self.bytes(&self.shape);
        if bytes
            .and_then(|bytes| bytes.checked_add(self.start))
            .is_none_or(|end| end > len)
        {
            return Err(Error::decode(format!(
                "its header announces elements of shape {:?} and dtype {}, and it has only {len} bytes",
                self.shape,
                self.dtype.name()
            )));
        }
        Ok(self)
    }

    /// Returns the size of an array of `shape`, in bytes.
    pub(super) fn bytes(&self, shape: &[usize]) -> Option<u64> {
        let elements = shape
            .iter()
            .try_fold(1, |all: u64, &n| all.checked_mul(n as u64))?;
        elements.checked_mul(self.dtype.itemsize() as u64)
    }
}

/// Parses NumPy's name of a dtype; also returns true if the byte order is not this machine's.
fn dtype(descr: &str) -> Result<(Dtype, bool)> {
    let refused = || {
        Error::decode(format!(
            "a tensor cannot hold its elements, which are {descr:?} to NumPy: only booleans, whole \
             numbers and floating point numbers"
        ))
    };
    let (order, name) = match descr.as_bytes().first() {
        Some(b'<' | b'>' | b'|' | b'=') => descr.split_at(1),
        _ => ("=", descr),
    };
    let dtype = match name {
        "b1" | "?" => Dtype::Bool,
        "u1" | "B" => Dtype::UInt8,
        "u2" => Dtype::UInt16,
        "u4" => Dtype::UInt32,
        "u8" => Dtype::UInt64,
        "i1" | "b" => Dtype::Int8,
        "i2" => Dtype::Int16,
        "i4" => Dtype::Int32,
        "i8" => Dtype::Int64,
        "f2" => Dtype::Float16,
        "f4" => Dtype::Float32,
        "f8" => Dtype::Float64,
        "c8" => Dtype::Complex64,
        "c16" => Dtype::Complex128,
        _ => return Err(refused()),
    };
    let other = if cfg!(target_endian = "little") {
        ">"
    } else {
        "<"
    };
    Ok((dtype, order == other && dtype.itemsize() > 1))
}

/// The rows of an array that form a sample, as a Python slice with step 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowRange {
    /// The first row; negative ones count from the end.
    pub start: Option<i64>,
    /// One past the last row; negative ones count from the end.
    pub stop: Option<i64>,
}

impl RowRange {
    /// Returns the rows of an array that has `len` of them.
    fn of(self, len: usize) -> Range<usize> {
        let place = |at: i64| {
            let from_start = if at < 0 {
                at.saturating_add_unsigned(len as u64)
            } else {
                at
            };
            usize::try_from(from_start).unwrap_or(0).min(len)
        };
        let start = self.start.map_or(0, place);
        let stop = self.stop.map_or(len, place);
        start..stop.max(start)
    }
}

/// Samples in `.npy` files.
#[derive(Debug)]
pub struct Npy {
    headers: Vec<Header<Layout>>,
    shapes: Shapes,
    /// Empty, one for all files, or one for each.
    rows: Vec<RowRange>,
    dtype: Dtype,
}

impl Npy {
    /// Reads the headers of all files; returns the format and the bytes with their stamps.
    ///
    /// `rows` is empty, one range for all files, or one for each.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], [`Error::Read`]: no file can be read; those of [`headers`].
    pub fn open(
        blobs: &Blobs,
        rows: Vec<RowRange>,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Npy, Blobs)> {
        let (blobs, found) = headers(blobs, Layout::read, tick)?;
        Ok((Npy::new(found, rows, &blobs)?, blobs))
    }

    /// Makes the column from the headers of the arrays in `blobs`.
    ///
    /// # Errors
    ///
    /// As [`Npy::open`], if no header is known.
    pub(super) fn new(
        mut found: Vec<Header<Layout>>,
        rows: Vec<RowRange>,
        blobs: &Blobs,
    ) -> Result<Npy> {
        let dtype = one_dtype(&mut found, blobs, |layout| layout.dtype)?;
        let mut npy = Npy {
            headers: found,
            shapes: Shapes::default(),
            rows,
            dtype,
        };
        let shapes = npy.headers.iter().enumerate().map(|(index, header)| {
            let layout = header.ok()?;
            Some(npy.sample_shape(index, layout))
        });
        npy.shapes = shapes.collect();
        Ok(npy)
    }

    /// Returns the rows of the array at `index` that are its sample; None for all of them.
    fn range(&self, index: usize, layout: &Layout) -> Option<Range<usize>> {
        let rows = match self.rows.as_slice() {
            [] => return None,
            [rows] => *rows,
            all => *all.get(index)?,
        };
        layout.shape.first().map(|&len| rows.of(len))
    }

    fn sample_shape(&self, index: usize, layout: &Layout) -> Vec<usize> {
        let mut shape = layout.shape.clone();
        if let (Some(range), Some(first)) = (self.range(index, layout), shape.first_mut()) {
            *first = range.len();
        }
        shape
    }
}

impl Array for Npy {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shapes(&self) -> Option<&Shapes> {
        Some(&self.shapes)
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        let header = &self.headers[index];
        if header.is_unread() {
            return Ok(Blobs::ALL); // decoding returns the error
        }
        let layout = header.known()?;
        let len = layout.bytes(&layout.shape).unwrap_or(0);
        let whole = layout.start..layout.start + len;
        Ok(match (self.range(index, layout), layout.shape.first()) {
            (Some(range), Some(&rows)) if !layout.fortran || layout.shape.len() == 1 => {
                let row = len / (rows as u64).max(1);
                let start = layout.start + range.start as u64 * row;
                start..start + range.len() as u64 * row
            }
            _ => whole,
        })
    }

    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let layout = self.headers[index].known()?;
        let shape = self.shapes.get(index).unwrap_or(&[]);
        let out = target.shaped(shape)?;
        let itemsize = self.dtype.itemsize();
        if layout.fortran && layout.shape.len() > 1 {
            let first = self.range(index, layout).map_or(0, |range| range.start);
            order::from_fortran(bytes, &layout.shape, first, shape, itemsize, out);
        } else {
            out.copy_from_slice(bytes);
        }
        if layout.swapped {
            order::swap(self.dtype, out);
        }
        Ok(())
    }
}
