//! NumPy's `.npz`: a zip file with a `.npy` file for each array.
//!
//! [`Arrays`] knows the arrays, [`Directory`] their location. Refuses what `numpy.load` refuses, and a member
//! whose CRC-32 differs from the directory's, unless only some of its rows are read.

use std::cell::RefCell;
use std::ops::Range;

use zlib_rs::crc32::crc32;
use zlib_rs::{Inflate, InflateFlush, Status};

use super::arrays::{Arrays, listed};
use super::npy::{Npy, RowRange};
use super::{Array, Shapes, Target, headers};
use crate::archive::{Directory, Member};
use crate::column::{Blobs, Look};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::memory::fallible::resize;

/// Bytes of a compressed member that are read first, for its header.
const FIRST_BYTES: u64 = 1024;

/// Window bits for raw deflate with the longest window.
const WINDOW_BITS: u8 = 15;

thread_local! {
    static STATE: RefCell<Inflate> = RefCell::new(Inflate::new(false, WINDOW_BITS));
}

/// Samples in `.npz` files, under one key.
#[derive(Debug)]
pub struct Npz {
    arrays: Arrays,
    /// The location of each member, and the size of all its elements; None without a header.
    members: Vec<Option<(Member, u64)>>,
}

impl Npz {
    /// Reads the headers of the arrays under `key`; otherwise as [`Arrays::npy`].
    ///
    /// # Errors
    ///
    /// Those of [`Arrays::npy`].
    pub fn open(
        blobs: &Blobs,
        key: &str,
        rows: &[RowRange],
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Npz, Blobs)> {
        let key = key.to_owned();
        let (blobs, found) = headers(blobs, move |look| read(look, &key), tick)?;
        let place = |(npy, member): &(Npy, Member)| (*member, npy.bytes().unwrap_or(0));
        let members = found.iter().map(|header| header.ok().map(place)).collect();
        let found = found.into_iter().map(|header| header.map(|(npy, _)| npy));
        let arrays = Arrays::of_rows(found.collect(), rows, &blobs)?;
        Ok((Npz { arrays, members }, blobs))
    }

    /// Returns the location of the member at `index`, the range of its contents that is the sample, and true if
    /// only that range is read.
    fn place(&self, index: usize) -> Result<Option<Place>> {
        let part = self.arrays.part(index)?;
        Ok(self.members[index].map(|(member, whole)| Place {
            alone: !member.deflated && part.end - part.start < whole,
            member,
            part,
        }))
    }
}

/// The bytes that are read for a sample.
struct Place {
    member: Member,
    /// Range in the member's contents.
    part: Range<u64>,
    /// True if only this range is read.
    alone: bool,
}

/// Finds an array as NumPy does, and reads its header.
fn read(look: &mut Look<'_>, key: &str) -> Result<(Npy, Member)> {
    let directory = Directory::read(look)?;
    let member = match directory.member(look, key)? {
        Some(member) => Some(member),
        None => directory.member(look, &format!("{key}.npy"))?,
    };
    let Some(member) = member else {
        return Err(missing(&directory, key));
    };
    let npy = Npy::read(member.size, |part| {
        if member.deflated {
            return inflate_part(look, member, part);
        }
        let end = part.end.min(member.size);
        look.read(member.start + part.start.min(end)..member.start + end)
    });
    let npy = npy.map_err(|error| match error {
        Error::Decode { reason, .. } => Error::decode(format!("its array {key:?}: {reason}")),
        other => other,
    })?;
    Ok((npy, member))
}

/// Returns the error of a file without the array.
fn missing(directory: &Directory, key: &str) -> Error {
    let names = listed(directory.names().map(|name| {
        let name = name.strip_suffix(b".npy").unwrap_or(name);
        format!("{:?}", String::from_utf8_lossy(name))
    }));
    Error::decode(format!("it has no array {key:?}; it has {names}"))
}

/// Inflates a range of a compressed member, reading no more of it than necessary.
fn inflate_part(look: &mut Look<'_>, member: Member, part: Range<u64>) -> Result<Vec<u8>> {
    let wanted = part.end.min(member.size) as usize;
    let mut out = vec![0; wanted]; // of a header: at most 10 kB
    let mut taken = FIRST_BYTES;
    loop {
        let len = taken.min(member.len);
        let compressed = look.read(member.start..member.start + len)?;
        let (made, ended) = inflate(&compressed, &mut out)?;
        if made == wanted || ended || len == member.len {
            out.truncate(made);
            out.drain(..(part.start as usize).min(made));
            return Ok(out);
        }
        taken *= 4;
    }
}

/// Inflates a whole member into `out`.
fn inflate_all(compressed: &[u8], member: Member, out: &mut Vec<u8>) -> Result<()> {
    resize(out, member.size as usize + 1)?; // one byte more detects a longer stream
    let (made, ended) = inflate(compressed, out)?;
    if !ended || made as u64 != member.size {
        return Err(Error::decode(
            "the size of its compressed bytes differs from its zip directory",
        ));
    }
    out.truncate(made);
    Ok(())
}

/// Inflates `compressed` into `out`; returns the number of bytes, and true if the stream ends there.
fn inflate(compressed: &[u8], out: &mut [u8]) -> Result<(usize, bool)> {
    STATE.with_borrow_mut(|state| {
        state.reset(false);
        let (mut read, mut made) = (0, 0);
        loop {
            let status =
                state.decompress(&compressed[read..], &mut out[made..], InflateFlush::NoFlush);
            let status = status.map_err(|_| Error::decode("its compressed bytes are damaged"))?;
            let (before, now) = ((read, made), (state.total_in(), state.total_out()));
            (read, made) = (now.0 as usize, now.1 as usize);
            if status == Status::StreamEnd {
                return Ok((made, true));
            }
            if before == (read, made) {
                return Ok((made, false));
            }
        }
    })
}

impl Array for Npz {
    fn dtype(&self) -> Dtype {
        self.arrays.dtype()
    }

    fn shapes(&self) -> Option<&Shapes> {
        self.arrays.shapes()
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        Ok(match self.place(index)? {
            None => Blobs::ALL,
            Some(place) if place.alone => {
                place.member.start + place.part.start..place.member.start + place.part.end
            }
            Some(place) => place.member.range(),
        })
    }

    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let Some(place) = self.place(index)? else {
            return self.arrays.decode(index, bytes, target); // decoding returns the error
        };
        if place.alone {
            return self.arrays.decode(index, bytes, target);
        }
        let mut scratch = Blobs::spare();
        let decoded = (|| {
            let contents = if place.member.deflated {
                inflate_all(bytes, place.member, &mut scratch)?;
                &scratch
            } else {
                bytes
            };
            if crc32(0, contents) != place.member.crc {
                return Err(Error::decode(
                    "the checksum of its array differs from its zip directory",
                ));
            }
            let part = place.part.start as usize..place.part.end as usize;
            self.arrays.decode(index, &contents[part], target)
        })();
        Blobs::recycle(scratch);
        decoded
    }
}
