//! Columns of encoded samples that are not images: arrays, text, raw bytes.

use std::ops::Range;
use std::time::Instant;

use crate::collate::{SampleMut, Shape, Slot};
use crate::column::{Blob, Blobs, Column, Layout, Place, Refused};
use crate::error::{Error, Result};
use crate::format::{Array, Target, Text};
use crate::memory::fallible::shrunk;
use crate::stats::Stages;

/// Arrays, each decoded from its own bytes.
#[derive(Debug)]
pub struct Arrays {
    blobs: Blobs,
    array: Box<dyn Array>,
    layout: Layout,
}

/// Texts, each decoded from its own bytes.
#[derive(Debug)]
pub struct Texts {
    blobs: Blobs,
    text: Box<dyn Text>,
    layout: Layout,
}

/// Encoded bytes as they are.
#[derive(Debug)]
pub struct Contents {
    blobs: Blobs,
    layout: Layout,
}

impl Arrays {
    /// Takes the bytes, and what decodes them.
    pub fn new(blobs: Blobs, array: impl Array + 'static) -> Arrays {
        let layout = Layout::arrays(array.dtype(), array.fixed_shape());
        Arrays {
            blobs,
            array: Box::new(array),
            layout,
        }
    }
}

impl Texts {
    /// Takes the bytes, and what decodes them.
    pub fn new(blobs: Blobs, text: impl Text + 'static) -> Texts {
        Texts {
            blobs,
            text: Box::new(text),
            layout: Layout {
                fetches: true,
                ..Layout::text()
            },
        }
    }
}

impl Contents {
    /// Takes the bytes.
    pub fn new(blobs: Blobs) -> Contents {
        Contents {
            blobs,
            layout: Layout {
                fetches: true,
                ..Layout::bytes()
            },
        }
    }
}

impl Column for Arrays {
    fn len(&self) -> usize {
        self.blobs.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        let shape = self.array.fixed_shape().or_else(|| self.array.shape(index));
        Ok(shape.map(Shape::from_slice))
    }

    fn blobs(&self) -> Option<&Blobs> {
        Some(&self.blobs)
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        let part = self.array.part(index);
        part.map_err(|error| error.of_file(self.blobs.path(index)))
    }

    fn decode(
        &self,
        index: usize,
        blob: Option<Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        decode(&self.blobs, index, blob, stages, |bytes| {
            let mut target = SlotTarget {
                slot: place.slot,
                position: place.position,
                itemsize: self.layout.dtype.itemsize(),
                buffer: None,
            };
            let made = self.array.decode(index, &bytes, &mut target);
            Blobs::recycle(bytes);
            made?;
            target.buffer.ok_or(Error::Abandoned)?.commit();
            Ok(())
        })
    }
}

impl Column for Texts {
    fn len(&self) -> usize {
        self.blobs.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn blobs(&self) -> Option<&Blobs> {
        Some(&self.blobs)
    }

    fn decode(
        &self,
        index: usize,
        blob: Option<Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        decode(&self.blobs, index, blob, stages, |bytes| {
            let text = self.text.text(index, &bytes);
            Blobs::recycle(bytes);
            place.slot.keep_texts(place.position, [text?]);
            Ok(())
        })
    }
}

impl Column for Contents {
    fn len(&self) -> usize {
        self.blobs.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn blobs(&self) -> Option<&Blobs> {
        Some(&self.blobs)
    }

    fn decode(
        &self,
        index: usize,
        blob: Option<Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        decode(&self.blobs, index, blob, stages, |bytes| {
            place.slot.keep_bytes(place.position, [shrunk(bytes)?]);
            Ok(())
        })
    }
}

/// Calls `make` with the bytes of a sample, counts its time, and names the file of its error.
fn decode(
    blobs: &Blobs,
    index: usize,
    blob: Option<Blob>,
    stages: &mut Stages,
    make: impl FnOnce(Vec<u8>) -> Result<()>,
) -> Result<Option<Refused>> {
    let Some(Blob::Encoded(bytes)) = blob else {
        return Err(Error::Abandoned);
    };
    let begun = Instant::now();
    let made = make(bytes);
    stages.decode += begun.elapsed();
    made.map_err(|error| error.of_file(blobs.path(index)))?;
    Ok(None)
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
