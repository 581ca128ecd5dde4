//! Images: encoded or raw, decoded and transformed for each sample.

use std::cell::RefCell;
use std::time::Instant;

use crate::collate::Slot;
use crate::column::{Blob, Blobs, Column, Layout, Place, Refused, Rows};
use crate::decode::{Encoded, Format, Library, Reading, Switches};
use crate::error::{Error, Result};
use crate::image::{Key, Pipeline, Plan, Region, Scratch, Shape};
use crate::memory::Dtype;
use crate::stats::Stages;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs `body` with the scratch memory that this thread uses for all its images.
pub(super) fn with_scratch<T>(body: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(body)
}

/// Images, and the operations applied to each.
#[derive(Debug)]
pub struct Image {
    source: Source,
    pipeline: Pipeline,
    layout: Layout,
}

/// The source of images.
#[derive(Debug)]
pub enum Source {
    /// Encoded bytes, and how to read them.
    Encoded(Blobs, Reading),
    /// Rows of shape `(H, W)` or `(H, W, C)`, one byte per channel.
    Decoded(Rows),
}

impl Source {
    /// Returns (height, width) if all images have the same, and the bytes of a pixel if all have the same.
    pub fn known(&self) -> (Option<(usize, usize)>, Option<usize>) {
        match self {
            Self::Encoded(_, reading) => (None, reading.mode.channels()),
            Self::Decoded(rows) => {
                let shape = shape_of(rows);
                (Some((shape.height, shape.width)), Some(shape.channels))
            }
        }
    }
}

impl Image {
    /// Takes images, and what is done to each.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: the rows are not images.
    pub fn new(source: Source, pipeline: Pipeline) -> Result<Image> {
        if let Source::Decoded(rows) = &source
            && !is_image(rows)
        {
            return Err(Error::transform(
                format!(
                    "take rows of shape {:?} and dtype {} for images",
                    rows.row_shape(),
                    rows.dtype().name()
                ),
                "images are (H, W), (H, W, 1) or (H, W, 3) of uint8",
            ));
        }
        let layout = Layout {
            fetches: matches!(source, Source::Encoded(..)),
            is_random: pipeline.is_random(),
            is_pixels: pipeline.makes_pixels(),
            ..Layout::images(pipeline.dtype(), pipeline.fixed_shape())
        };
        Ok(Image {
            source,
            pipeline,
            layout,
        })
    }

    /// Returns the operations applied to each image.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Decodes the image at `index`, of which `blob` was fetched, and writes the sample to its place.
    fn make(
        &self,
        index: usize,
        blob: Option<&mut Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<()> {
        let begun = Instant::now();
        let Place { key, switches, .. } = place;
        with_scratch(|scratch| {
            let (plan, shape, held) = match (&self.source, blob) {
                (Source::Encoded(_, reading), Some(Blob::Encoded(bytes))) => {
                    self.decode_file(bytes, *reading, key, switches, scratch)?
                }
                (Source::Encoded(..), Some(Blob::Decoded(frame))) => {
                    scratch.decoded = std::mem::take(frame);
                    self.plan_whole(scratch.decoded.shape(), key)?
                }
                (Source::Encoded(..), None) => return Err(Error::Abandoned),
                (Source::Decoded(rows), _) => self.copy(rows, index, key, scratch)?,
            };
            let decoded_at = Instant::now();
            stages.decode += decoded_at - begun;
            let decoded = Decoded {
                plan,
                shape,
                held,
                pipeline: &self.pipeline,
                scratch,
            };
            put(
                decoded,
                place.slot,
                place.position,
                self.layout.dtype.itemsize(),
            )?;
            stages.transform += decoded_at.elapsed();
            Ok(())
        })
    }

    fn decode_file(
        &self,
        encoded: &[u8],
        reading: Reading,
        key: Key,
        switches: Switches,
        scratch: &mut Scratch,
    ) -> Result<(Plan, Shape, Region)> {
        let encoded = Encoded::open(encoded, reading, switches)?;
        if reading.upright {
            encoded.expect_upright()?;
        }
        let shape = encoded.shape();
        let planned = self.pipeline.plan(shape, key).and_then(|plan| {
            let wanted = self.pipeline.wanted(&plan, shape, scratch)?;
            Ok((plan, wanted))
        });
        match planned {
            Ok((plan, wanted)) => {
                let held = encoded.decode(wanted, &mut scratch.decoded)?;
                Ok((plan, shape, held))
            }
            Err(error) => {
                // An error in the file comes before an error of the operations.
                encoded.decode(Region::whole(shape), &mut scratch.decoded)?;
                Err(error)
            }
        }
    }

    fn copy(
        &self,
        rows: &Rows,
        index: usize,
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<(Plan, Shape, Region)> {
        let shape = shape_of(rows);
        scratch.decoded.reset(shape)?;
        rows.copy(index, scratch.decoded.pixels_mut());
        self.plan_whole(shape, key)
    }

    /// Plans for an image that is held whole.
    fn plan_whole(&self, shape: Shape, key: Key) -> Result<(Plan, Shape, Region)> {
        Ok((self.pipeline.plan(shape, key)?, shape, Region::whole(shape)))
    }
}

impl Column for Image {
    fn len(&self) -> usize {
        match &self.source {
            Source::Encoded(blobs, _) => blobs.len(),
            Source::Decoded(rows) => rows.len(),
        }
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn blobs(&self) -> Option<&Blobs> {
        match &self.source {
            Source::Encoded(blobs, _) => Some(blobs),
            Source::Decoded(_) => None,
        }
    }

    fn falls_back_if_unreadable(&self) -> bool {
        matches!(&self.source, Source::Encoded(_, reading) if reading.library == Library::Torchvision)
    }

    fn decode(
        &self,
        index: usize,
        mut blob: Option<Blob>,
        place: Place<'_>,
        stages: &mut Stages,
    ) -> Result<Option<Refused>> {
        let made = self.make(index, blob.as_mut(), place, stages);
        let Source::Encoded(blobs, reading) = &self.source else {
            return made.map(|()| None);
        };
        let made = made.map_err(|error| error.of_file(blobs.path(index)));
        match (made, blob) {
            (Err(error @ Error::Decode { .. }), Some(Blob::Encoded(bytes))) => Ok(Some(Refused {
                format: Format::of(&bytes),
                source: blobs.leave(index, bytes),
                reading: *reading,
                error,
            })),
            (Ok(()), Some(Blob::Encoded(bytes))) => {
                Blobs::recycle(bytes);
                Ok(None)
            }
            (made, _) => made.map(|()| None),
        }
    }
}

/// Writes a sample to its slot.
fn put(decoded: Decoded<'_>, slot: &Slot, position: usize, itemsize: usize) -> Result<()> {
    if let Some(writer) = slot.writer() {
        return decoded.write(&mut writer.rows(position..position + 1)?);
    }
    let shape = match slot.expected_shape(position) {
        Some(expected_shape) => expected_shape.to_vec(),
        None => decoded.shape(),
    };
    let mut buffer = slot.sample_mut(position, &shape, itemsize)?;
    decoded.write(&mut buffer)?;
    buffer.commit();
    Ok(())
}

fn is_image(rows: &Rows) -> bool {
    rows.dtype() == Dtype::UInt8 && matches!(rows.row_shape(), [_, _] | [_, _, 1 | 3])
}

fn shape_of(rows: &Rows) -> Shape {
    let side = |at| rows.row_shape().get(at).copied().unwrap_or(1);
    Shape::new(side(0), side(1), side(2))
}

/// A decoded image that waits to be transformed.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    plan: Plan,
    shape: Shape,
    held: Region,
    pipeline: &'a Pipeline,
    scratch: &'a mut Scratch,
}

impl Decoded<'_> {
    /// Returns the shape of the sample that it becomes.
    pub(super) fn shape(&self) -> Vec<usize> {
        self.pipeline.sample_shape(&self.plan)
    }

    /// Transforms it and writes the sample to `out`.
    pub(super) fn write(self, out: &mut [u8]) -> Result<()> {
        self.pipeline
            .apply(&self.plan, self.shape, self.held, self.scratch, out)
    }
}
