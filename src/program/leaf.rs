//! A leaf of a sample: a column, and what is done to its values.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::column::{Blobs, Rows};
use crate::error::{Error, Result};
use crate::image::{Pipeline, Scratch};
use crate::memory::Dtype;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// One leaf. Adding a kind is one arm per `match` below.
#[derive(Debug)]
pub enum Leaf {
    /// Rows of an array, as they are.
    Rows(Rows),
    /// Images, decoded and transformed.
    Image(Image),
}

impl Leaf {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Leaf::Rows(rows) => rows.len(),
            Leaf::Image(image) => image.blobs.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element type of a sample.
    pub fn dtype(&self) -> Dtype {
        match self {
            Leaf::Rows(rows) => rows.dtype(),
            Leaf::Image(image) => image.pipeline.dtype(),
        }
    }

    /// Shape of every sample, if it is known before a sample is decoded.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        match self {
            Leaf::Rows(rows) => Some(rows.row_shape().to_vec()),
            Leaf::Image(image) => image.pipeline.fixed_shape(),
        }
    }

    /// The encoded bytes behind the leaf, if it has some.
    pub fn blobs(&self) -> Option<&Blobs> {
        match self {
            Leaf::Rows(_) => None,
            Leaf::Image(image) => Some(&image.blobs),
        }
    }
}

/// Encoded images, and the operations that each goes through.
#[derive(Debug)]
pub struct Image {
    blobs: Blobs,
    pipeline: Pipeline,
}

impl Image {
    /// Makes the leaf.
    pub fn new(blobs: Blobs, pipeline: Pipeline) -> Image {
        Image { blobs, pipeline }
    }

    /// Decodes `encoded`, the file at `index`, and hands it to `then`.
    pub(super) fn decode<T>(
        &self,
        index: usize,
        encoded: &[u8],
        then: impl FnOnce(Decoded<'_>) -> Result<T>,
    ) -> Result<T> {
        SCRATCH.with_borrow_mut(|scratch| {
            let size = self.pipeline.decode(encoded, scratch);
            let done = size.and_then(|(height, width)| {
                let shape = self.pipeline.shape_of(height, width);
                then(Decoded {
                    shape,
                    pipeline: &self.pipeline,
                    scratch,
                })
            });
            done.map_err(|error| match error {
                Error::Decode { path, reason } if path == PathBuf::new() => Error::Decode {
                    path: self.blobs.path(index).to_owned(),
                    reason,
                },
                other => other,
            })
        })
    }
}

/// A decoded image that waits to be transformed.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    shape: Vec<usize>,
    pipeline: &'a Pipeline,
    scratch: &'a mut Scratch,
}

impl Decoded<'_> {
    /// Shape of the sample that it becomes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Transforms it and writes the sample to `out`.
    pub(super) fn write(self, out: &mut [u8]) -> Result<()> {
        self.pipeline.apply(self.scratch, out)
    }
}
