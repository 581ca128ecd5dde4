//! A leaf of a sample: a column, what is done to its values, and which of them in which order.

use std::ops::Range;

use super::concat::Concat;
use super::image::Image;
use super::kind::Kind;
use super::lists::Lists;
use super::record::{Content, Record};
use super::select::Select;
use crate::collate::{Shape, sizes};
use crate::column::{self, Blobs, Ragged, Rows, Table, Values};
use crate::decode::Library;
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// One leaf. Adding a kind is one arm per `match` below.
#[derive(Debug)]
pub enum Leaf {
    /// Rows of an array, unchanged.
    Rows(Rows),
    /// A varying number of rows of an array for each sample.
    Ragged(Ragged),
    /// Samples that their storage produces.
    Table(Box<dyn Table>),
    /// Arrays, text or bytes, decoded.
    Record(Record),
    /// Images, decoded and transformed.
    Image(Image),
    /// A selection of a leaf's samples.
    Select(Select),
    /// Several leaves, one after the other.
    Concat(Concat),
    /// Lists of a leaf's samples.
    Lists(Lists),
}

/// Memory that a thread keeps for its next copies.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: column::Scratch,
    spare: Vec<Vec<usize>>,
}

impl Scratch {
    /// Returns an empty list, to be given back to [`Scratch::keep`].
    pub fn indices(&mut self) -> Vec<usize> {
        let mut list = self.spare.pop().unwrap_or_default();
        list.clear();
        list
    }

    /// Returns the scratch memory of columns.
    pub(super) fn rows(&mut self) -> &mut column::Scratch {
        &mut self.rows
    }

    /// Keeps a list for its memory.
    pub fn keep(&mut self, list: Vec<usize>) {
        self.spare.push(list);
    }
}

impl Leaf {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        match self {
            Leaf::Rows(rows) => rows.len(),
            Leaf::Ragged(ragged) => ragged.len(),
            Leaf::Table(table) => table.len(),
            Leaf::Record(record) => record.len(),
            Leaf::Image(image) => image.len(),
            Leaf::Select(select) => select.len(),
            Leaf::Concat(concat) => concat.len(),
            Leaf::Lists(lists) => lists.len(),
        }
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of its samples.
    pub fn kind(&self) -> Kind {
        match self {
            Leaf::Rows(_) => Kind::Rows,
            Leaf::Ragged(_) => Kind::Ragged,
            Leaf::Table(table) => match table.values() {
                Values::Rows(_) => Kind::Rows,
                Values::Ragged(_) => Kind::Ragged,
                Values::Text => Kind::Text,
                Values::Bytes => Kind::Bytes,
            },
            Leaf::Record(record) => match record.content() {
                Content::Array(_) => Kind::Array,
                Content::Text(_) => Kind::Text,
                Content::Bytes => Kind::Bytes,
            },
            Leaf::Image(_) => Kind::Image,
            Leaf::Select(select) => select.from().kind(),
            Leaf::Concat(concat) => concat.parts()[0].kind(),
            Leaf::Lists(_) => Kind::Lists,
        }
    }

    /// Returns the depth of nested lists, and the kind of the innermost items.
    pub fn nesting(&self) -> (usize, Kind) {
        match self {
            Leaf::Select(select) => select.from().nesting(),
            Leaf::Concat(concat) => concat.parts()[0].nesting(),
            Leaf::Lists(lists) => {
                let (depth, kind) = lists.items().nesting();
                (depth + 1, kind)
            }
            _ => (0, self.kind()),
        }
    }

    /// Returns the element type of a sample; uint8 for text and bytes.
    pub fn dtype(&self) -> Dtype {
        match self {
            Leaf::Rows(rows) => rows.dtype(),
            Leaf::Ragged(ragged) => ragged.values().dtype(),
            Leaf::Table(table) => match table.values() {
                Values::Rows(dtype) | Values::Ragged(dtype) => dtype,
                Values::Text | Values::Bytes => Dtype::UInt8,
            },
            Leaf::Record(record) => record.dtype(),
            Leaf::Image(image) => image.pipeline().dtype(),
            Leaf::Select(select) => select.from().dtype(),
            Leaf::Concat(concat) => concat.parts()[0].dtype(),
            Leaf::Lists(lists) => lists.items().dtype(),
        }
    }

    /// Returns the shape of every sample, if it is known before a sample is decoded.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        match self {
            Leaf::Rows(rows) => Some(rows.row_shape().to_vec()),
            Leaf::Ragged(_) | Leaf::Lists(_) => None,
            Leaf::Table(table) => {
                let rows = matches!(table.values(), Values::Rows(_));
                rows.then(|| table.row_shape().to_vec())
            }
            Leaf::Record(record) => record.fixed_shape().map(<[usize]>::to_vec),
            Leaf::Image(image) => image.pipeline().fixed_shape(),
            Leaf::Select(select) => select.from().fixed_shape(),
            Leaf::Concat(concat) => concat.fixed_shape(),
        }
    }

    /// Returns the shape of the rows that samples, or the innermost items, consist of; empty for what is
    /// decoded.
    pub fn row_shape(&self) -> &[usize] {
        match self {
            Leaf::Rows(rows) => rows.row_shape(),
            Leaf::Ragged(ragged) => ragged.values().row_shape(),
            Leaf::Table(table) => table.row_shape(),
            Leaf::Record(_) | Leaf::Image(_) => &[],
            Leaf::Select(select) => select.from().row_shape(),
            Leaf::Concat(concat) => concat.parts()[0].row_shape(),
            Leaf::Lists(lists) => lists.items().row_shape(),
        }
    }

    /// Returns the shape of the sample at `index`, which must be below [`Leaf::len`], if it is known before
    /// it is made; None for text, images and lists that are not arrays.
    pub fn shape(&self, index: usize) -> Result<Option<Shape>> {
        let rows = |rows, row_shape: &[usize]| Some(sizes(rows, row_shape));
        Ok(match self.at(index)? {
            (Leaf::Ragged(ragged), at) => rows(ragged.range(at)?.len(), self.row_shape()),
            (Leaf::Table(table), at) if matches!(table.values(), Values::Ragged(_)) => {
                rows(table.rows_of(at)?, table.row_shape())
            }
            (Leaf::Record(record), at) => record.shape(at).map(Shape::from_slice),
            (Leaf::Lists(lists), at) => lists.shape(at)?,
            (leaf, _) => leaf.fixed_shape().map(Shape::from_vec),
        })
    }

    /// Returns the rows of the sample at `index`, which must be below [`Leaf::len`], of a leaf of
    /// [`Kind::Ragged`].
    pub(super) fn rows_of(&self, index: usize) -> Result<Option<usize>> {
        match self.at(index)? {
            (Leaf::Ragged(ragged), at) => ragged.range(at).map(|range| Some(range.len())),
            (Leaf::Table(table), at) => table.rows_of(at).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the maximum of rows of a sample of a leaf of [`Kind::Ragged`], if it is known.
    pub(super) fn most_rows(&self) -> Option<usize> {
        match self {
            Leaf::Ragged(ragged) => Some(ragged.longest()),
            Leaf::Select(select) => select.from().most_rows(),
            Leaf::Concat(concat) => {
                let mut parts = concat.parts().iter();
                parts.try_fold(0, |most, part| Some(part.most_rows()?.max(most)))
            }
            _ => None,
        }
    }

    /// Returns the text of the sample at `index`, which must be below [`Leaf::len`], of a leaf of
    /// [`Kind::Text`] that fetches nothing.
    pub(super) fn text(&self, index: usize) -> Result<Box<str>> {
        match self.at(index)? {
            (Leaf::Table(table), at) => utf8(at, table.bytes(at)?),
            _ => Ok(Box::default()),
        }
    }

    /// Returns the bytes of the sample at `index`, which must be below [`Leaf::len`], of a leaf of
    /// [`Kind::Bytes`] that fetches nothing.
    pub(super) fn bytes(&self, index: usize) -> Result<Box<[u8]>> {
        match self.at(index)? {
            (Leaf::Table(table), at) => table.bytes(at),
            _ => Ok(Box::default()),
        }
    }

    /// Returns the texts of many samples of such a leaf.
    pub(super) fn texts(&self, indices: &[usize]) -> Result<Vec<Box<str>>> {
        match self {
            Leaf::Table(table) => {
                let all = table.all_bytes(indices)?.into_iter();
                all.zip(indices)
                    .map(|(bytes, &at)| utf8(at, bytes))
                    .collect()
            }
            Leaf::Select(select) => select.from().texts(&select.indices(indices)?),
            _ => each(indices, |index| self.text(index)),
        }
    }

    /// Returns the bytes of many samples of a leaf of [`Kind::Bytes`] that fetches nothing.
    pub(super) fn all_bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        match self {
            Leaf::Table(table) => table.all_bytes(indices),
            Leaf::Select(select) => select.from().all_bytes(&select.indices(indices)?),
            _ => each(indices, |index| self.bytes(index)),
        }
    }

    /// Returns the bytes of a sample, as far as they are known before it is made; the mean for ragged ones
    /// and lists.
    pub(super) fn sample_bytes(&self) -> usize {
        match self {
            Leaf::Ragged(ragged) => ragged.mean_bytes(),
            Leaf::Select(select) => select.from().sample_bytes(),
            Leaf::Lists(lists) => lists.mean_bytes(),
            Leaf::Concat(concat) if matches!(self.kind(), Kind::Ragged | Kind::Lists) => {
                concat.parts()[0].sample_bytes()
            }
            _ => {
                let shape = self.fixed_shape();
                let elements = shape.map_or(0, |shape| shape.iter().product());
                elements * self.dtype().itemsize()
            }
        }
    }

    /// Returns the column that holds the sample at `index`, which must be below [`Leaf::len`], and the index
    /// in it.
    ///
    /// It is neither a [`Leaf::Select`] nor a [`Leaf::Concat`]: those have no samples of their own.
    pub fn at(&self, index: usize) -> Result<(&Leaf, usize)> {
        let (mut leaf, mut index) = (self, index);
        loop {
            match leaf {
                Leaf::Select(select) => (leaf, index) = (select.from(), select.index(index)?),
                Leaf::Concat(concat) => {
                    let (part, at) = concat.part(index)?;
                    (leaf, index) = (part, at);
                }
                _ => return Ok((leaf, index)),
            }
        }
    }

    /// Returns true if encoded bytes are read before samples are made.
    pub fn fetches(&self) -> bool {
        self.any(&|leaf| leaf.blobs().is_some())
    }

    /// Returns true if Python is to decode the files of a column that cannot even be read.
    pub(super) fn falls_back_if_unreadable(&self) -> bool {
        let encoded = match self {
            Leaf::Image(image) => image.encoded(),
            _ => None,
        };
        encoded.is_some_and(|(_, reading)| reading.library == Library::Torchvision)
    }

    /// Returns the encoded bytes of a column.
    pub(super) fn blobs(&self) -> Option<&Blobs> {
        match self {
            Leaf::Image(image) => image.blobs(),
            Leaf::Record(record) => Some(record.blobs()),
            _ => None,
        }
    }

    /// Returns the range of its encoded bytes that is read for the sample at `index` of a column.
    pub(super) fn part(&self, index: usize) -> Result<Range<u64>> {
        match self {
            Leaf::Record(record) => record.part(index),
            _ => Ok(Blobs::ALL),
        }
    }

    /// Returns true if samples are images, decoded from files.
    pub fn is_image(&self) -> bool {
        self.any(&|leaf| matches!(leaf, Leaf::Image(_)))
    }

    /// Returns true if samples depend on the key of their draws.
    pub fn is_random(&self) -> bool {
        self.any(&|leaf| matches!(leaf, Leaf::Image(image) if image.pipeline().is_random()))
    }

    /// Copies the samples at `indices`, each below [`Leaf::len`] and all of one shape, to `out`, one after
    /// the other. Text and decoded samples are not copied.
    pub(super) fn gather(
        &self,
        indices: &[usize],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        match self {
            Leaf::Rows(rows) => rows.gather(indices, &mut scratch.rows, out),
            Leaf::Ragged(ragged) => ragged.gather(indices, &mut scratch.rows, out)?,
            Leaf::Table(table) => table.gather(indices, out)?,
            Leaf::Record(_) | Leaf::Image(_) => {}
            Leaf::Select(select) => select.gather(indices, scratch, out)?,
            Leaf::Concat(concat) => concat.gather(indices, scratch, out)?,
            Leaf::Lists(lists) => lists.gather(indices, scratch, out)?,
        }
        Ok(())
    }

    /// Returns true if samples are the unconverted pixels of images.
    pub fn makes_pixels(&self) -> bool {
        !self.any(&|leaf| match leaf {
            Leaf::Image(image) => !image.pipeline().makes_pixels(),
            _ => true,
        })
    }

    /// Describes samples in words.
    pub fn describe(&self) -> String {
        let dtype = self.dtype().name();
        let fixed = self.fixed_shape();
        let shape = fixed.map_or("varying shape".into(), |shape| format!("shape {shape:?}"));
        match self.kind() {
            Kind::Rows => format!("rows of {dtype}, {shape}"),
            Kind::Ragged => format!("ragged rows of {dtype}, shape {:?}", self.row_shape()),
            Kind::Text => "text".into(),
            Kind::Bytes => "bytes".into(),
            Kind::Array => format!("arrays of {dtype}, {shape}"),
            Kind::Image => format!("images of {dtype}, {shape}"),
            Kind::Lists => match self.nesting() {
                (_, Kind::Text) => "lists of text".into(),
                (_, Kind::Bytes) => "lists of bytes".into(),
                _ => format!("lists of {dtype}"),
            },
        }
    }

    /// Prefetches the shape of the sample at `index`, which is needed soon.
    pub(super) fn prefetch_shape(&self, index: usize) {
        let Ok((Leaf::Ragged(ragged), at)) = self.at(index) else {
            return;
        };
        ragged.prefetch_range(at);
    }

    /// Prefetches the sample at `index`, which is copied soon.
    pub(super) fn prefetch(&self, index: usize) {
        match self.at(index) {
            Ok((Leaf::Rows(rows), at)) => rows.prefetch(at..at + 1),
            Ok((Leaf::Ragged(ragged), at)) => ragged.prefetch(at),
            _ => {}
        }
    }

    /// Returns true if any column satisfies `test`.
    fn any(&self, test: &dyn Fn(&Leaf) -> bool) -> bool {
        match self {
            Leaf::Select(select) => select.from().any(test),
            Leaf::Concat(concat) => concat.parts().iter().any(|part| part.any(test)),
            Leaf::Lists(lists) => lists.items().any(test),
            _ => test(self),
        }
    }
}

/// Converts the bytes of the sample at `index` to text.
fn utf8(index: usize, bytes: Box<[u8]>) -> Result<Box<str>> {
    let text = String::from_utf8(bytes.into_vec()).map_err(|error| Error::Utf8 {
        index,
        source: error.utf8_error(),
    });
    Ok(text?.into_boxed_str())
}

/// Calls `make` for each index; an error carries the position of its index.
fn each<T>(indices: &[usize], make: impl Fn(usize) -> Result<T>) -> Result<Vec<T>> {
    let places = indices.iter().enumerate();
    let made = places.map(|(place, &index)| make(index).map_err(|error| error.at(place)));
    made.collect()
}
