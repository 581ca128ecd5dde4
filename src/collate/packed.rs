//! A packed field while it is being made: any thread writes the pieces of a sample.
//!
//! Owns the tensors that one leaf becomes, and the description of the rows. Invariant: the thread that writes
//! a sample claims all of its pieces; the padding is written when the field is created, so each byte is
//! written once.

use super::array::fill;
use super::pack::{Placed, check_aligned, len, lengths};
use super::sample_mut::{Memory, SampleMut};
use super::{Bins, Dense, Element, Fill, Packing, Rule, Shape, bytes_of, sizes};
use crate::error::{Error, Result};
use crate::memory::Cast;
use crate::memory::{Dtype, RowsMut, Writer, lease};
use crate::sync::Arc;

/// The tensors that a packed leaf becomes.
#[derive(Clone, Debug)]
pub struct Packs {
    /// The plan of rows, for the leaf whose lengths decide.
    pub packing: Option<Packing>,
    /// The tensors made of its values.
    pub columns: Vec<PackedColumn>,
    /// True to add the position of each token in its document.
    pub positions: bool,
    /// Adds the number of each token's document: the first number, and int64 or int32.
    pub segments: Option<(i32, Dtype)>,
    /// Number of tensors of the boundaries to make.
    pub boundaries: usize,
    /// True if the rows lie side by side in one dimension.
    pub is_flat: bool,
}

/// One tensor of packed samples.
#[derive(Clone, Copy, Debug)]
pub struct PackedColumn {
    /// The padding value.
    pub fill: Fill,
    /// The value that replaces the first token of each piece.
    pub start: Option<Fill>,
}

/// Packed samples, and the description of their rows.
#[derive(Debug)]
pub struct PackedField {
    /// One for each column: `(rows, T)`, or `(rows * T,)`.
    pub columns: Vec<Dense>,
    /// int64, shaped as a column.
    pub positions: Option<Dense>,
    /// int64 or int32, shaped as a column.
    pub segments: Option<Dense>,
    /// int32 `(pieces + 1,)`.
    pub boundaries: Vec<Dense>,
    /// Length of the longest piece.
    pub longest: usize,
    /// Number of tokens.
    pub tokens: usize,
}

/// The memory of a packed field, while threads write to it.
#[derive(Debug)]
pub(super) struct Packed {
    packs: Packs,
    rows: Arc<Rows>,
    shapes: Vec<Shape>,
    itemsize: usize,
    cast: Option<Cast>,
    dtype: Dtype,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    writer: Writer,
    start: Option<Element>,
}

/// The rows of a batch, shared by its leaves.
#[derive(Debug)]
pub struct Rows {
    lengths: Vec<usize>,
    bins: Bins,
    placed: Vec<Placed>,
    first_position: i64,
}

impl Rows {
    /// Plans the rows of a batch from the shapes of the tokens.
    pub fn plan(rule: &Rule, packing: &Packing, shapes: &[Shape]) -> Result<Arc<Rows>> {
        let lengths = lengths(shapes.iter().map(Shape::as_slice));
        let lengths = lengths.map_err(|wrong| rule.error(wrong))?;
        let bins = packing.bins(&lengths).map_err(|wrong| rule.error(wrong))?;
        Ok(Arc::new(Rows {
            lengths,
            placed: bins.placed(),
            bins,
            first_position: packing.first_position,
        }))
    }
}

impl Packed {
    /// Allocates the field for samples of these shapes; integers become int64, as tokens are.
    pub(super) fn new(
        rule: &Rule,
        packs: &Packs,
        rows: &Arc<Rows>,
        dtype: Dtype,
        mut shapes: Vec<Shape>,
    ) -> Result<Packed> {
        let itemsize = dtype.itemsize();
        lengths(shapes.iter().map(Shape::as_slice))
            .and_then(|own| check_aligned(&own, &rows.lengths))
            .map_err(|wrong| rule.error(wrong))?;
        let seen = rule.common_dtype(dtype, &mut shapes);
        let cast = Cast::new(seen, Dtype::Int64);
        let dtype = cast.map_or(seen, Cast::to);
        let element = |fill: Fill| fill.element(dtype).map_err(|wrong| rule.error(wrong));
        let tokens: usize = rows.bins.shape().iter().product();
        let columns = packs.columns.iter().map(|column| {
            let padding = element(column.fill)?;
            let start = column.start.map(element).transpose()?;
            let size = dtype.itemsize();
            let memory = lease(size.saturating_mul(tokens))?;
            let writer = Writer::new(memory.into(), tokens, size);
            for range in rows.bins.padding() {
                if let Ok(mut rest) = writer.rows(range) {
                    fill(&padding[..size], &mut rest);
                }
            }
            Ok(Column { writer, start })
        });
        Ok(Packed {
            columns: columns.collect::<Result<_>>()?,
            packs: packs.clone(),
            rows: rows.clone(),
            shapes,
            itemsize,
            cast,
            dtype,
        })
    }

    /// Returns the shape of the sample at `position`.
    pub(super) fn shape(&self, position: usize) -> &[usize] {
        &self.shapes[position]
    }

    /// Claims the memory of a sample's pieces. A sample that is exactly one piece, in its own dtype, is
    /// written there directly.
    pub(super) fn sample_mut(&self, position: usize) -> Result<SampleMut<'_>> {
        let pieces = self.pieces(position);
        let mut places = Vec::with_capacity(pieces.len() * self.columns.len());
        for column in &self.columns {
            for placed in pieces {
                let range = placed.at..placed.at + len(&placed.piece);
                let claimed = column.writer.rows(range);
                places.push(claimed.map_err(|_| Error::WrittenTwice { position })?);
            }
        }
        let elements = self.shapes[position].iter().product::<usize>();
        let is_whole = matches!(pieces, [one] if len(&one.piece) == elements);
        let memory = if is_whole && self.cast.is_none() {
            None
        } else {
            Some(lease(elements * self.itemsize)?)
        };
        Ok(SampleMut(Memory::Pieces(self, position, places, memory)))
    }

    /// Copies a sample to its pieces: from `sample`, or if that is None from the first column's piece.
    pub(super) fn place(&self, position: usize, places: &mut [RowsMut<'_>], sample: Option<&[u8]>) {
        let pieces = self.pieces(position);
        let size = self.dtype.itemsize();
        if let Some(sample) = sample {
            for (place, placed) in places.iter_mut().zip(pieces.iter().cycle()) {
                let piece = placed.piece;
                let from = piece.start as usize * self.itemsize;
                let part = &sample[from..from + len(&piece) * self.itemsize];
                match self.cast {
                    Some(cast) => cast.run(part, place),
                    None => place.copy_from_slice(part),
                }
            }
        } else if let [first, others @ ..] = places {
            for other in others {
                other.copy_from_slice(first);
            }
        }
        let each = places.chunks_exact_mut(pieces.len().max(1));
        for (column, places) in self.columns.iter().zip(each) {
            if let Some(start) = &column.start {
                for place in places {
                    place[..size].copy_from_slice(&start[..size]);
                }
            }
        }
    }

    fn pieces(&self, position: usize) -> &[Placed] {
        let placed = &self.rows.placed;
        let first = placed.partition_point(|placed| placed.piece.sample < position);
        let count = placed[first..].partition_point(|placed| placed.piece.sample == position);
        &placed[first..first + count]
    }

    pub(super) fn finish(self) -> Result<PackedField> {
        let Packed { packs, rows, .. } = self;
        let bins = &rows.bins;
        let shape = Shape::from_slice(&bins.shape());
        let shape = if packs.is_flat {
            sizes(shape.iter().product(), &[])
        } else {
            shape
        };
        let made = |dtype: Dtype, write: &dyn Fn(&mut [u8])| -> Result<Dense> {
            let mut memory = lease(bytes_of(&shape, dtype.itemsize()))?;
            write(&mut memory);
            Ok(Dense {
                memory: memory.into(),
                shape: shape.clone(),
                dtype,
            })
        };
        let positions = packs.positions.then(|| {
            made(Dtype::Int64, &|out| {
                bins.write_positions(rows.first_position, out);
            })
        });
        let segments = packs
            .segments
            .map(|(first, dtype)| made(dtype, &|out| bins.write_segments(first, dtype, out)));
        let columns = self.columns.into_iter().map(|column| Dense {
            memory: column.writer.finish(),
            shape: shape.clone(),
            dtype: self.dtype,
        });
        let boundaries = (0..packs.boundaries).map(|_| bins.dense_boundaries());
        Ok(PackedField {
            columns: columns.collect(),
            positions: positions.transpose()?,
            segments: segments.transpose()?,
            boundaries: boundaries.collect::<Result<_>>()?,
            longest: bins.longest(),
            tokens: bins.tokens(),
        })
    }
}
