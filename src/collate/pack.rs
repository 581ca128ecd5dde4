//! Packs documents side by side in rows.
//!
//! Owns the contents of the rows, once it is planned which pieces share one: the tokens, their positions in
//! the documents, the numbers of the pieces, and the boundaries between them. Invariant: a piece never
//! crosses a row, the pieces of a row are in batch order, and the padding of a row counts as a piece in the
//! boundaries.

use std::num::NonZeroU32;
use std::ops::Range;

use super::array::{Array, copy, fill};
use super::{Dense, Mismatch, sizes};
use crate::error::Result;
use crate::memory::{Dtype, lease};
use crate::plan::{self, Bin, Piece, Strategy};

/// The treatment of a sample that is longer than a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    /// Its beginning is kept.
    Truncate,
    /// It is cut into pieces that fit.
    Split,
    /// It is left out.
    Drop,
    /// It is an error.
    Error,
}

/// The rows that documents are packed into.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Maximum of tokens in a row.
    pub max_length: NonZeroU32,
    /// The strategy by which rows are filled.
    pub strategy: Strategy,
    /// The treatment of longer documents.
    pub overlong: Overlong,
    /// True for rows of exactly `max_length` tokens; otherwise they are as wide as the fullest.
    pub pad_rows: bool,
    /// Number of rows; None for as many as needed.
    pub rows: Option<usize>,
    /// Position of the first token of a document.
    pub first_position: i64,
    /// True if a document may be empty.
    pub empty: bool,
}

impl Packing {
    /// Plans the rows for documents of these lengths.
    pub fn bins(&self, lengths: &[usize]) -> std::result::Result<Bins, Mismatch> {
        if !self.empty
            && let Some(position) = lengths.iter().position(|&len| len == 0)
        {
            return Err(Mismatch::EmptyDocument { position });
        }
        let kept = self.kept(lengths)?;
        let bins = plan::pack(&kept, self.max_length, self.strategy);
        let width = self.pad_rows.then_some(self.max_length.get() as usize);
        Bins::new(bins, width, self.rows)
    }

    /// Returns the number of tokens that are packed of each document.
    fn kept(&self, lengths: &[usize]) -> std::result::Result<Vec<u32>, Mismatch> {
        let max_length = self.max_length.get();
        let overlong = match self.strategy {
            Strategy::ConcatSplit => Overlong::Split, // any document may be cut
            _ => self.overlong,
        };
        let one = |(position, &len): (usize, &usize)| match overlong {
            Overlong::Drop if len > max_length as usize => Ok(0),
            Overlong::Truncate => {
                Ok(u32::try_from(len).map_or(max_length, |len| len.min(max_length)))
            }
            _ => u32::try_from(len)
                .ok()
                .filter(|&len| overlong == Overlong::Split || len <= max_length)
                .ok_or(Mismatch::Overlong {
                    position,
                    len,
                    max_length,
                }),
        };
        lengths.iter().enumerate().map(one).collect()
    }
}

/// A piece, and its offset in tokens with all rows side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) piece: Piece,
    pub(super) at: usize,
}

/// Rows of pieces.
#[derive(Clone, Debug)]
pub struct Bins {
    rows: Vec<Bin>,
    width: usize,
}

impl Bins {
    /// Takes the pieces of each row. Rows are as wide as the fullest one, or `width`. There are `rows` of
    /// them, or as many as needed but at least one.
    pub fn new(
        mut bins: Vec<Bin>,
        width: Option<usize>,
        rows: Option<usize>,
    ) -> std::result::Result<Bins, Mismatch> {
        for bin in &mut bins {
            bin.retain(|piece| piece.start < piece.stop);
            bin.sort_unstable_by_key(order);
        }
        bins.retain(|bin| !bin.is_empty());
        bins.sort_unstable_by_key(|bin| order(&bin[0]));
        let needed = bins.len();
        let rows = rows.unwrap_or(needed.max(1));
        if needed > rows {
            return Err(Mismatch::TooManyRows { needed, rows });
        }
        let fullest = bins.iter().map(|bin| tokens(bin)).max().unwrap_or(0);
        let width = width.unwrap_or(fullest);
        bins.resize(rows, Vec::new());
        let bins = Bins { rows: bins, width };
        match bins.elements().map(i32::try_from) {
            Some(Ok(_)) => Ok(bins),
            _ => Err(Mismatch::TooManyTokens { rows, width }),
        }
    }

    /// Returns `(rows, width)`.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows.len(), self.width]
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|row| tokens(row)).sum()
    }

    /// Returns the end of each piece, with all rows side by side, after a leading 0. The padding of a row is
    /// a piece, so that kernels that read boundaries neither merge it with a document nor skip it.
    pub fn boundaries(&self) -> Vec<usize> {
        let mut ends = vec![0];
        for (number, row) in self.rows.iter().enumerate() {
            let mut end = number * self.width;
            ends.extend(row.iter().map(|piece| {
                end += len(piece);
                end
            }));
            let last = (number + 1) * self.width;
            if end < last {
                ends.push(last);
            }
        }
        ends
    }

    /// Makes the boundaries, int32 `(pieces + 1,)`.
    pub fn dense_boundaries(&self) -> Result<Dense> {
        let ends = self.boundaries();
        let mut memory = lease(4 * ends.len())?;
        for (place, end) in memory.as_chunks_mut::<4>().0.iter_mut().zip(&ends) {
            let end = i32::try_from(*end).unwrap_or(i32::MAX); // `new` has checked the range
            *place = end.to_ne_bytes();
        }
        Ok(Dense {
            memory: memory.into(),
            shape: sizes(ends.len(), &[]),
            dtype: Dtype::Int32,
        })
    }

    /// Returns the length of the longest piece, padding included.
    pub fn longest(&self) -> usize {
        let ends = self.boundaries();
        let pieces = ends.windows(2).map(|pair| pair[1] - pair[0]);
        pieces.max().unwrap_or(0)
    }

    /// Returns the offset of each piece, by sample and in token order.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let mut all = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut at = number * self.width;
            for &piece in row {
                all.push(Placed { piece, at });
                at += len(&piece);
            }
        }
        all.sort_unstable_by_key(|placed| order(&placed.piece));
        all
    }

    /// Returns the token range of each row's padding, with all rows side by side.
    pub(super) fn padding(&self) -> impl Iterator<Item = Range<usize>> {
        let rows = self.rows.iter().enumerate();
        rows.map(|(number, row)| {
            let start = number * self.width;
            start + tokens(row)..start + self.width
        })
    }

    /// Writes the tokens of samples, one-dimensional arrays. `start` replaces the first token of each piece.
    pub fn write(
        &self,
        samples: &[Array<'_>],
        element: &[u8],
        start: Option<&[u8]>,
        out: &mut [u8],
    ) {
        let itemsize = element.len();
        self.each(out, itemsize, |part, piece| {
            let Some(piece) = piece else {
                return fill(element, part);
            };
            let sample = samples[piece.sample];
            let skipped = usize::from(start.is_some());
            let (head, body) = part.split_at_mut(skipped * itemsize);
            head.copy_from_slice(start.unwrap_or_default());
            if body.is_empty() {
                return;
            }
            let from = (piece.start as usize + skipped).cast_signed();
            let tokens = Array {
                first: sample
                    .first
                    .wrapping_add_signed(sample.strides[0].wrapping_mul(from)),
                shape: &[len(piece) - skipped],
                ..sample
            };
            copy(tokens, itemsize, body);
        });
    }

    /// Writes the int64 position of each token in its piece, counted from `first`; padding is counted too.
    pub fn write_positions(&self, first: i64, out: &mut [u8]) {
        self.each(out, 8, |part, _| {
            for (position, place) in (first..).zip(part.as_chunks_mut::<8>().0) {
                *place = position.to_ne_bytes();
            }
        });
    }

    /// Writes the number of each token's piece in its row, from `first` on, as int64 or int32; 0 for padding.
    pub fn write_segments(&self, first: i32, dtype: Dtype, out: &mut [u8]) {
        let itemsize = dtype.itemsize();
        let row_bytes = self.width * itemsize;
        if row_bytes == 0 {
            return;
        }
        for (row, out) in self.rows.iter().zip(out.chunks_exact_mut(row_bytes)) {
            let mut at = 0;
            for (number, piece) in (first..).zip(row) {
                let end = at + len(piece) * itemsize;
                match dtype {
                    Dtype::Int32 => fill(&number.to_ne_bytes(), &mut out[at..end]),
                    _ => fill(&i64::from(number).to_ne_bytes(), &mut out[at..end]),
                }
                at = end;
            }
            out[at..].fill(0);
        }
    }

    fn elements(&self) -> Option<usize> {
        self.rows.len().checked_mul(self.width)
    }

    /// Visits the memory of each piece, and of each row's padding.
    fn each(
        &self,
        out: &mut [u8],
        itemsize: usize,
        mut visit: impl FnMut(&mut [u8], Option<&Piece>),
    ) {
        let row_bytes = self.width * itemsize;
        if row_bytes == 0 {
            return;
        }
        for (row, mut out) in self.rows.iter().zip(out.chunks_exact_mut(row_bytes)) {
            for piece in row {
                let (part, rest) = out.split_at_mut(len(piece) * itemsize);
                visit(part, Some(piece));
                out = rest;
            }
            visit(out, None);
        }
    }
}

/// Returns the lengths of documents, which must have one dimension.
pub fn lengths<'a>(
    shapes: impl Iterator<Item = &'a [usize]>,
) -> std::result::Result<Vec<usize>, Mismatch> {
    let one = |(position, shape): (usize, &[usize])| match shape {
        [len] => Ok(*len),
        _ => Err(Mismatch::DocumentRank {
            position,
            shape: shape.to_vec(),
        }),
    };
    shapes.enumerate().map(one).collect()
}

/// Checks that samples are as long as their tokens.
pub fn check_aligned(own: &[usize], tokens: &[usize]) -> std::result::Result<(), Mismatch> {
    match (0..own.len()).find(|&at| tokens.get(at) != Some(&own[at])) {
        None => Ok(()),
        Some(position) => Err(Mismatch::Unaligned {
            position,
            len: own[position],
            tokens: tokens.get(position).copied().unwrap_or(0),
        }),
    }
}

fn order(piece: &Piece) -> (usize, u32) {
    (piece.sample, piece.start)
}

pub(super) fn len(piece: &Piece) -> usize {
    (piece.stop - piece.start) as usize
}

fn tokens(bin: &[Piece]) -> usize {
    bin.iter().map(len).sum()
}
