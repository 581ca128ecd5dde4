//! Files that native code refuses, and their decoding in Python.
//!
//! Native code decodes a file exactly or not at all. Owns the request, and the way of the pixels back into
//! the batch: a pool thread transforms them as those of any other file. Refuses to know what decodes them.

use super::{Fetched, Run};
use crate::column::{Blob, Refused};
use crate::error::Result;
use crate::image::Frame;
use crate::stream::Completion;

/// Decodes files that native code refuses.
pub trait FallbackDecoder: Send + Sync {
    /// Takes a request, to be answered at any time from any thread; returns at once.
    fn decode(&self, request: Request);
}

/// An image that native code does not decode, and what else was fetched of its sample.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The image.
    pub(super) refused: Refused,
    /// Number of its column.
    pub(super) leaf: usize,
    /// The files fetched for the columns after that one.
    pub(super) rest: Vec<Blob>,
}

impl Refusal {
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

    /// Returns the refused image.
    pub fn refused(&self) -> &Refused {
        &self.refusal.refused
    }

    /// Completes the request with an image from [`Refused::frame`], or with an error.
    pub fn answer(self, answer: Result<Frame>) {
        match answer {
            Ok(frame) => self.completion.fetched(self.refusal.answered(frame)),
            Err(error) => self.completion.failed(error),
        }
    }
}
