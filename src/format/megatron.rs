//! The index of a Megatron `.bin` file of tokens, version 1.
//!
//! `MMIDIDX\0\0`, the version (u64), a code for the dtype (u8), the number of sequences (u64) and of
//! document boundaries (u64); then for each sequence its elements (i32), for each its first byte in the
//! `.bin` file (i64), and for each boundary the sequence that begins there (i64). What follows, such as
//! modes, is left alone. From Megatron-LM, `megatron/core/datasets/indexed_dataset.py`.

use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::memory::fallible::{collect, reserve};

const MAGIC: &[u8] = b"MMIDIDX\0\0";
/// Bytes before the first array.
const HEADER: usize = MAGIC.len() + 8 + 1 + 8 + 8;

/// The sequences of a `.bin` file.
#[derive(Debug)]
pub struct Megatron {
    /// Type of the elements.
    pub dtype: Dtype,
    /// First byte of each sequence.
    pub starts: Vec<u64>,
    /// Elements of each sequence.
    pub lengths: Vec<u32>,
    /// The first sequence of each document, and the number of sequences.
    boundaries: Vec<u64>,
}

impl Megatron {
    /// Reads the bytes of an `.idx` file.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: they are not such an index.
    pub fn parse(bytes: &[u8]) -> Result<Megatron> {
        let rest = bytes.strip_prefix(MAGIC);
        let rest = rest.ok_or_else(|| Error::decode("it does not begin with MMIDIDX"))?;
        let (version, rest) = number(rest)?;
        if version != 1 {
            let reason = format!("its version is {version}; only version 1 is read");
            return Err(Error::decode(reason));
        }
        let (&code, rest) = rest.split_first().ok_or_else(short)?;
        let (sequences, rest) = number(rest)?;
        let (boundaries, rest) = number(rest)?;
        let sizes = |count: u64, size| usize::try_from(count).ok()?.checked_mul(size);
        let [lengths, starts, documents] = [
            sizes(sequences, 4),
            sizes(sequences, 8),
            sizes(boundaries, 8),
        ];
        let missing = || {
            let left = bytes.len() - HEADER;
            let reason = format!(
                "it announces {sequences} sequences and {boundaries} boundaries of documents, and \
                 has {left} bytes for them"
            );
            Error::decode(reason)
        };
        let (lengths, rest) = cut(rest, lengths).ok_or_else(missing)?;
        let (starts, rest) = cut(rest, starts).ok_or_else(missing)?;
        let (documents, _) = cut(rest, documents).ok_or_else(missing)?;
        let index = Megatron {
            dtype: dtype(code)?,
            starts: longs(starts, "the first byte of sequence")?,
            lengths: ints(lengths)?,
            boundaries: longs(documents, "boundary")?,
        };
        index.check()?;
        Ok(index)
    }

    fn check(&self) -> Result<()> {
        let mut before = 0;
        for (at, &boundary) in self.boundaries.iter().enumerate() {
            if boundary < before || boundary > self.starts.len() as u64 {
                let sequences = self.starts.len();
                let reason = format!("boundary {at} is sequence {boundary} of {sequences}");
                return Err(Error::decode(reason));
            }
            before = boundary;
        }
        Ok(())
    }

    /// Joins the sequences of each document, which must be adjacent in the file; those before the first
    /// boundary and after the last belong to no document.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: they are not adjacent, or a document is too long.
    pub fn documents(self) -> Result<Megatron> {
        let itemsize = self.dtype.itemsize() as u64;
        let count = self.boundaries.len().saturating_sub(1);
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        reserve(&mut starts, count)?;
        reserve(&mut lengths, count)?;
        for (document, bounds) in self.boundaries.windows(2).enumerate() {
            let sequences = bounds[0] as usize..bounds[1] as usize;
            let start = self.starts.get(sequences.start).copied().unwrap_or(0);
            let mut length = 0_u32;
            for sequence in sequences {
                let end = start.checked_add(u64::from(length) * itemsize);
                let whole = length.checked_add(self.lengths[sequence]);
                length = match whole {
                    Some(whole) if end == Some(self.starts[sequence]) => whole,
                    _ => {
                        let reason = format!(
                            "the sequences of document {document} do not follow each other in the file"
                        );
                        return Err(Error::decode(reason));
                    }
                };
            }
            starts.push(start);
            lengths.push(length);
        }
        Ok(Megatron {
            starts,
            lengths,
            ..self
        })
    }
}

fn short() -> Error {
    Error::decode(format!("it is shorter than the {HEADER} bytes of a header"))
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(short)?;
    Ok((u64::from_le_bytes(*number), rest))
}

fn cut(bytes: &[u8], size: Option<usize>) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(size?)
}

fn dtype(code: u8) -> Result<Dtype> {
    Ok(match code {
        1 => Dtype::UInt8,
        2 => Dtype::Int8,
        3 => Dtype::Int16,
        4 => Dtype::Int32,
        5 => Dtype::Int64,
        6 => Dtype::Float64,
        7 => Dtype::Float32,
        8 => Dtype::UInt16,
        _ => {
            return Err(Error::decode(format!(
                "its dtype has the unknown code {code}"
            )));
        }
    })
}

fn longs(bytes: &[u8], what: &str) -> Result<Vec<u64>> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let each = numbers.iter().map(|number| i64::from_le_bytes(*number));
    let each = each.enumerate().map(|(at, number)| {
        let negative = |_| Error::decode(format!("{what} {at} is {number}"));
        u64::try_from(number).map_err(negative)
    });
    collect(numbers.len(), each)
}

fn ints(bytes: &[u8]) -> Result<Vec<u32>> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let each = numbers.iter().map(|number| i32::from_le_bytes(*number));
    let each = each.enumerate().map(|(at, number)| {
        let negative = |_| Error::decode(format!("sequence {at} has {number} elements"));
        u32::try_from(number).map_err(negative)
    });
    collect(numbers.len(), each)
}
