//! Files that native code refuses, and their decoding in Python.
//!
//! Native code decodes a file exactly or not at all. Owns the request, and the way of the pixels back into
//! the batch: a pool thread transforms them as those of any other file. Refuses to know what decodes them.

use std::fmt::Debug;

use super::Run;
use super::fetched::{Blob, Fetched};
use crate::column::BlobSource;
use crate::decode::{Format, Reading};
use crate::error::{Error, Result};
use crate::image::{Frame, Shape};
use crate::stream::Completion;

/// Decodes files that native code refuses.
pub trait FallbackDecoder: Debug + Send + Sync {
    /// Takes a request, to be answered at any time from any thread; returns at once.
    fn decode(&self, request: Request);
}

/// A file that native code does not decode.
#[derive(Debug)]
pub struct Refusal {
    /// Where its bytes are.
    pub source: BlobSource,
    /// How to read it.
    pub reading: Reading,
    /// The format that its first bytes show.
    pub format: Option<Format>,
    /// Why native code refuses it; raised if there is no fallback.
    pub error: Error,
    /// Number of its leaf.
    pub(super) leaf: usize,
    /// The files fetched for the leaves after that one.
    pub(super) rest: Vec<Blob>,
}

impl Refusal {
    /// Makes the image of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: the bytes do not fit such an image, or there is no memory for it.
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
                reason: format!(
                    "the image needs height * width * channels bytes, and {wanted} channels, 1 to 4"
                ),
            });
        }
        let mut frame = Frame::default();
        frame.reset(shape)?;
        frame.pixels_mut().copy_from_slice(pixels);
        Ok(frame)
    }

    /// Returns the rest of the sample's files, with the decoded image first.
    pub(super) fn answered(self, frame: Frame) -> Fetched {
        let mut blobs = self.rest;
        blobs.insert(0, Blob::Decoded(frame));
        Fetched {
            first: self.leaf,
            blobs,
        }
    }
}

/// A refused file, and the duty to decode it. Dropping it fails the sample.
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

    /// Returns the refused file.
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// Completes the request with an image from [`Refusal::frame`], or with an error.
    pub fn answer(self, answer: Result<Frame>) {
        match answer {
            Ok(frame) => self.completion.fetched(self.refusal.answered(frame)),
            Err(error) => self.completion.done(Err(error)),
        }
    }
}
