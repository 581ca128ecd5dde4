//! NumPy's `.npy`: a header with dtype, order and shape, then the elements.
//!
//! Versions 1.0, 2.0 and 3.0 of the format as `numpy/lib/format.py` documents it. Numbers and booleans of
//! either byte order, in C or Fortran order; samples come out in C order and native byte order. Refuses
//! dtypes without a tensor: objects, text, dates, records, extended precision.

mod literal;

use std::ops::Range;

use super::arrays::{Arrays, Layout};
use super::{Header, headers};
use crate::column::Blobs;
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
#[derive(Debug)]
pub(super) struct Npy {
    /// Byte offset of the elements.
    start: u64,
    dtype: Dtype,
    /// True if their byte order is not this machine's.
    swapped: bool,
    /// True if the first dimension varies fastest.
    fortran: bool,
    shape: Vec<usize>,
}

impl Npy {
    /// Reads the header of an array of `whole` bytes, header included. `read` returns a range of them, as far
    /// as they exist.
    pub(super) fn read(
        whole: u64,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<Npy> {
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
        Npy::parse(&text, start)?.within(whole)
    }

    fn parse(text: &[u8], start: u64) -> Result<Npy> {
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
        Ok(Npy {
            start,
            dtype,
            swapped,
            fortran: *fortran,
            shape: shape.clone(),
        })
    }

    /// Refuses a file of `len` bytes that is too short for its elements.
    fn within(self, len: u64) -> Result<Npy> {
        let bytes = self.bytes();
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

    /// Returns the size of all elements, in bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        let mut sizes = self.shape.iter();
        let elements = sizes.try_fold(1, |all: u64, &n| all.checked_mul(n as u64))?;
        elements.checked_mul(self.dtype.itemsize() as u64)
    }

    /// Returns the layout of its rows in a range, or of all.
    fn layout(mut self, rows: Option<RowRange>) -> Layout {
        let mut strides = vec![0; self.shape.len()];
        let mut stride = self.dtype.itemsize();
        let mut add = |(into, &n): (&mut usize, &usize)| {
            *into = stride;
            stride = stride.saturating_mul(n);
        };
        let axes = strides.iter_mut().zip(&self.shape);
        if self.fortran {
            axes.for_each(&mut add);
        } else {
            axes.rev().for_each(&mut add);
        }
        if let (Some(rows), Some(len)) = (rows, self.shape.first_mut()) {
            let range = rows.of(*len);
            *len = range.len();
            let skipped = (range.start as u64).saturating_mul(strides[0] as u64);
            self.start = self.start.saturating_add(skipped); // of no elements it may be anything
        }
        Layout::new(self.start, self.dtype, self.swapped, self.shape, strides)
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

impl Arrays {
    /// Reads the headers of all `.npy` files; returns the format and the bytes with their stamps.
    ///
    /// `rows` is empty, one range for all files, or one for each.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], [`Error::Read`]: no file can be read; those of [`headers`].
    pub fn npy(
        blobs: &Blobs,
        rows: &[RowRange],
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Arrays, Blobs)> {
        let (blobs, found) = headers(
            blobs,
            |look| Npy::read(look.len(), |part| look.read(part)),
            tick,
        )?;
        Ok((Arrays::of_rows(found, rows, &blobs)?, blobs))
    }

    /// Makes the column of `rows`, as [`Arrays::npy`] does, of the arrays in `blobs`.
    pub(super) fn of_rows(
        found: Vec<Header<Npy>>,
        rows: &[RowRange],
        blobs: &Blobs,
    ) -> Result<Arrays> {
        let rows_of = |index: usize| match rows {
            [rows] => Some(*rows),
            all => all.get(index).copied(),
        };
        let layouts = found.into_iter().enumerate();
        let layouts = layouts.map(|(index, header)| match (header, rows_of(index)) {
            (Header::Known(npy), Some(_)) if npy.shape.is_empty() => {
                Header::Broken("its array has no dimensions, so it has no `rows`".into())
            }
            (header, rows) => header.map(|npy| npy.layout(rows)),
        });
        Arrays::new(layouts.collect(), blobs)
    }
}
