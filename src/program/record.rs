//! Columns of encoded samples that are not images: arrays, text, raw bytes.

use std::ops::Range;
use std::time::Instant;

use crate::collate::{SampleMut, Shape, Slot};
use crate::column::{Blob, Blobs, Column, Layout, Place, Refused};
use crate::error::{Error, Result};
use crate::format::{self, Array, Target};
use crate::memory::fallible::shrunk;
use crate::stats::Stages;

/// The contents of files, or of ranges of files, one for each sample.
#[derive(Debug)]
pub struct Contents {
    blobs: Blobs,
    format: Format,
    layout: Layout,
}

/// The decoder of a sample's bytes.
#[derive(Debug)]
enum Format {
    Array(Box<dyn Array>),
    Text,
    Bytes,
}

impl Contents {
    /// Takes the bytes of arrays, and what decodes them.
    pub fn arrays(blobs: Blobs, array: impl Array + 'static) -> Contents {
        let layout = Layout::arrays(array.dtype(), array.fixed_shape());
        Contents::new(blobs, Format::Array(Box::new(array)), layout)
    }

    /// Takes the bytes of texts.
    pub fn texts(blobs: Blobs) -> Contents {
        Contents::new(blobs, Format::Text, Layout::text())
    }

    /// Takes bytes that are the samples.
    pub fn bytes(blobs: Blobs) -> Contents {
        Contents::new(blobs, Format::Bytes, Layout::bytes())
    }

    fn new(blobs: Blobs, format: Format, layout: Layout) -> Contents {
        Contents {
            blobs,
            format,
            layout: Layout {
                fetches: true,
                ..layout
            },
        }
    }

    /// Decodes the `bytes` of the sample at `index`, and writes them to its place.
    fn make(&self, index: usize, bytes: Vec<u8>, place: Place<'_>) -> Result<()> {
        match &self.format {
            Format::Array(array) => {
                let mut target = SlotTarget {
                    slot: place.slot,
                    position: place.position,
                    itemsize: self.layout.dtype.itemsize(),
                    buffer: None,
                };
                let made = array.decode(index, &bytes, &mut target);
                Blobs::recycle(bytes);
                made?;
                target.buffer.ok_or(Error::Abandoned)?.commit();
            }
            Format::Text => {
                let text = format::text(&bytes);
                Blobs::recycle(bytes);
                place.slot.keep_texts(place.position, [text?]);
            }
            Format::Bytes => place.slot.keep_bytes(place.position, [shrunk(bytes)?]),
        }
        Ok(())
    }
}

impl Column for Contents {
    fn len(&self) -> usize {
        self.blobs.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        let Format::Array(array) = &self.format else {
            return Ok(None);
        };
        Ok(array.shape(index).map(Shape::from_slice))
    }

    fn blobs(&self) -> Option<&Blobs> {
        Some(&self.blobs)
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        let Format::Array(array) = &self.format else {
            return Ok(Blobs::ALL);
        };
        let part = array.part(index);
        part.map_err(|error| error.of_file(self.blobs.path(index)))
    }

    fn decode(
        &self,
        index: usize,
        blob: Option<Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        let Some(Blob::Encoded(bytes)) = blob else {
            return Err(Error::Abandoned);
        };
        let begun = Instant::now();
        let made = self.make(index, bytes, place);
        stages.decode += begun.elapsed();
        made.map_err(|error| error.of_file(self.blobs.path(index)))?;
        Ok(None)
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
