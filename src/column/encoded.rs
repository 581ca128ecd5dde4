//! Encoded samples on their way to a batch.

use super::BlobSource;
use crate::collate::Slot;
use crate::decode::{Format, Reading, Switches};
use crate::error::{Error, Result};
use crate::image::{self, Frame, Key};

/// What was fetched of one sample.
#[derive(Debug)]
pub enum Blob {
    /// Its bytes.
    Encoded(Vec<u8>),
    /// The whole image, decoded by Python.
    Decoded(Frame),
}

/// Where a sample is decoded to, and how.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The slot of its field.
    pub slot: &'a Slot,
    /// Its position there.
    pub position: usize,
    /// What its random operations draw from.
    pub key: Key,
    /// What Pillow is configured to tolerate.
    pub switches: Switches,
}

/// An image that native code does not decode.
#[derive(Debug)]
pub struct Refused {
    /// Where its bytes are.
    pub source: BlobSource,
    /// How to read it.
    pub reading: Reading,
    /// The format that its first bytes show.
    pub format: Option<Format>,
    /// Why native code refuses it; raised if there is no fallback.
    pub error: Error,
}

impl Refused {
    /// Makes the image of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: the bytes do not fit such an image, or there is no memory for it.
    pub fn frame(&self, pixels: &[u8], shape: image::Shape) -> Result<Frame> {
        let image::Shape {
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
}
