//! Encoded samples on their way to a batch.

use super::BlobSource;
use crate::collate::Slot;
use crate::decode::{Format, Reading, Switches};
use crate::error::{Error, Result};
use crate::image::{self, Frame, Key};

/// The content of one sample, as it was fetched.
#[derive(Debug)]
pub enum Blob {
    /// Its bytes.
    Encoded(Vec<u8>),
    /// The whole image, decoded by Python.
    Decoded(Frame),
}

/// The target of a decoded sample, and the settings of its decoding.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The slot of its field.
    pub slot: &'a Slot,
    /// Its position there.
    pub position: usize,
    /// The key of its random operations.
    pub key: Key,
    /// Pillow's setting for large images.
    pub switches: Switches,
}

/// An image that native code does not decode.
#[derive(Debug)]
pub struct Refused {
    /// The source of its bytes.
    pub source: BlobSource,
    /// The mode and the library to decode it with.
    pub reading: Reading,
    /// The format that its first bytes show.
    pub format: Option<Format>,
    /// The refusal of the native decoder; raised if there is no fallback.
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
            return Err(Error::transform(
                format!(
                    "take {} bytes for an image of shape {:?}",
                    pixels.len(),
                    [height, width, channels]
                ),
                format!(
                    "the image needs height * width * channels bytes, and {wanted} channels, 1 to 4"
                ),
            ));
        }
        let mut frame = Frame::default();
        frame.reset(shape)?;
        frame.pixels_mut().copy_from_slice(pixels);
        Ok(frame)
    }
}
