//! Files that are refused here, and who is asked for their pixels instead.
//!
//! Native code decodes a file exactly or not at all. Owns the question, and the way of the answer back
//! into the batch: pixels take the rest of the sample's way on a thread of the pool, as those of any
//! other file do. Refuses to know who answers.

use std::fmt::Debug;

use super::Run;
use super::fetched::{Blob, Fetched};
use crate::column::Place;
use crate::decode::{Format, Reading};
use crate::error::{Error, Result};
use crate::image::{Frame, Shape};
use crate::stream::Completion;

/// Who decodes what is refused here.
pub trait Foreign: Debug + Send + Sync {
    /// Takes a request, to be answered at any time from any thread; returns at once.
    fn ask(&self, request: Request);
}

/// A file that native code does not decode.
#[derive(Debug)]
pub struct Refusal {
    /// Where it is.
    pub place: Place,
    /// How it is to be read.
    pub reading: Reading,
    /// What its first bytes say that it is.
    pub format: Option<Format>,
    /// Why it is refused: what is raised if nobody else decodes it.
    pub error: Error,
    /// Number of its leaf.
    pub(super) leaf: usize,
    /// What was fetched for the leaves behind that one.
    pub(super) rest: Vec<Blob>,
}

impl Refusal {
    /// Makes the image of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: not the bytes of such an image, or no memory for it.
    pub fn frame(&self, pixels: &[u8], shape: Shape) -> Result<Frame> {
        let Shape {
            height,
            width,
            channels,
        } = shape;
        let wanted = self.reading.mode.channels().unwrap_or(channels);
        let bytes = height
            .checked_mul(width)
            .and_then(|pixels| pixels.checked_mul(channels));
        if bytes != Some(pixels.len()) || channels != wanted || !(1..=4).contains(&channels) {
            return Err(Error::Transform {
                what: format!(
                    "take {} bytes for an image of shape {:?}",
                    pixels.len(),
                    [height, width, channels]
                ),
                reason: format!("it needs as many, and {wanted} channels, 1 to 4"),
            });
        }
        let mut frame = Frame::default();
        frame.reset(shape)?;
        frame.pixels_mut().copy_from_slice(pixels);
        Ok(frame)
    }

    /// Returns what the rest of the sample is made from.
    pub(super) fn answered(self, frame: Frame) -> Fetched {
        let mut blobs = self.rest;
        blobs.insert(0, Blob::Decoded(frame));
        Fetched {
            first: self.leaf,
            blobs,
        }
    }
}

/// A question, and the duty to answer it. Dropping it fails the sample.
#[derive(Debug)]
pub struct Request {
    refusal: Refusal,
    completion: Completion<Run>,
}

impl Request {
    pub(super) fn new(refusal: Refusal, completion: Completion<Run>) -> Request {
        Request {
            refusal,
            completion,
        }
    }

    /// What is asked for.
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// Answers with what [`Refusal::frame`] made, or with why there is no image.
    pub fn answer(self, answer: Result<Frame>) {
        match answer {
            Ok(frame) => self.completion.fetched(self.refusal.answered(frame)),
            Err(error) => self.completion.done(Err(error)),
        }
    }
}
