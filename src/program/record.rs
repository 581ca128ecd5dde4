//! A leaf of decoded records that are not images: arrays, text, raw bytes.

use std::ops::Range;

use super::fetched::Blob;
use crate::collate::{SampleMut, Slot};
use crate::column::Blobs;
use crate::error::{Error, Result};
use crate::format::{Array, Target, Text};
use crate::memory::Dtype;
use crate::memory::fallible::shrunk;

/// Encoded bytes, and what they are decoded to.
#[derive(Debug)]
pub struct Record {
    blobs: Blobs,
    content: Content,
}

/// What encoded bytes are decoded to.
#[derive(Debug)]
pub enum Content {
    /// Arrays.
    Array(Box<dyn Array>),
    /// Text.
    Text(Box<dyn Text>),
    /// The bytes themselves.
    Bytes,
}

impl Record {
    /// Makes the leaf.
    pub fn new(blobs: Blobs, content: Content) -> Record {
        Record { blobs, content }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.blobs.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.blobs.is_empty()
    }

    /// Returns what the bytes are decoded to.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns the encoded bytes.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the element type; uint8 for text and bytes.
    pub fn dtype(&self) -> Dtype {
        match &self.content {
            Content::Array(array) => array.dtype(),
            Content::Text(_) | Content::Bytes => Dtype::UInt8,
        }
    }

    /// Returns the shape of every sample, if it is known to be the same.
    pub fn fixed_shape(&self) -> Option<&[usize]> {
        match &self.content {
            Content::Array(array) => array.fixed_shape(),
            Content::Text(_) | Content::Bytes => None,
        }
    }

    /// Returns the shape of the sample at `index`, if it is known before it is made.
    pub fn shape(&self, index: usize) -> Option<&[usize]> {
        match &self.content {
            Content::Array(array) => array.fixed_shape().or_else(|| array.shape(index)),
            Content::Text(_) | Content::Bytes => None,
        }
    }

    /// Returns the range of bytes that is read for the sample at `index`.
    pub(super) fn part(&self, index: usize) -> Result<Range<u64>> {
        match &self.content {
            Content::Array(array) => {
                let part = array.part(index);
                part.map_err(|error| error.of_file(self.blobs.path(index)))
            }
            Content::Text(_) | Content::Bytes => Ok(Blobs::ALL),
        }
    }

    /// Decodes the fetched sample at `index` into `position` of a slot.
    pub(super) fn make(
        &self,
        index: usize,
        blob: Option<Blob>,
        slot: &Slot,
        position: usize,
    ) -> Result<()> {
        let Some(Blob::Encoded(bytes)) = blob else {
            return Err(Error::Abandoned);
        };
        let made = if matches!(self.content, Content::Bytes) {
            shrunk(bytes).map(|bytes| slot.keep_bytes(position, [bytes]))
        } else {
            let made = self.decode(index, &bytes, slot, position);
            Blobs::recycle(bytes);
            made
        };
        made.map_err(|error| error.of_file(self.blobs.path(index)))
    }

    fn decode(&self, index: usize, bytes: &[u8], slot: &Slot, position: usize) -> Result<()> {
        match &self.content {
            Content::Array(array) => {
                let mut place = SlotTarget {
                    slot,
                    position,
                    itemsize: array.dtype().itemsize(),
                    buffer: None,
                };
                array.decode(index, bytes, &mut place)?;
                place.buffer.ok_or(Error::Abandoned)?.commit();
                Ok(())
            }
            Content::Text(text) => {
                slot.keep_texts(position, [text.text(index, bytes)?]);
                Ok(())
            }
            Content::Bytes => Ok(()),
        }
    }
}

/// The destination of a sample, claimed once its shape is known.
struct SlotTarget<'a> {
    slot: &'a Slot,
    position: usize,
    itemsize: usize,
    buffer: Option<SampleMut<'a>>,
}

impl Target for SlotTarget<'_> {
    fn shaped(&mut self, shape: &[usize]) -> Result<&mut [u8]> {
        let buffer = self.slot.sample_mut(self.position, shape, self.itemsize)?;
        Ok(self.buffer.insert(buffer))
    }
}
