//! Decoders: encoded bytes to pixels, bit for bit as Pillow's.
//!
//! Owns the choice of a decoder, made from the bytes and never from a file's name. Refuses to open
//! files. Invariant: what is decoded equals Pillow's pixels; what Pillow refuses is refused.

mod format;
mod jpeg;
mod switches;

pub use format::Format;
pub use switches::Switches;

use crate::Result;
use crate::image::{Frame, Region, Shape};

/// Which channels an image is decoded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Red, green and blue: Pillow's `convert("RGB")`.
    Rgb,
}

impl Mode {
    /// Finds the mode that Pillow calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "RGB" => Self::Rgb,
            _ => return None,
        })
    }

    /// Returns the bytes of a pixel, if it is the same for all files.
    pub fn channels(self) -> Option<usize> {
        match self {
            Self::Rgb => Some(3),
        }
    }
}

/// An encoded image whose header was read.
#[derive(Debug)]
pub struct Encoded<'a> {
    bytes: &'a [u8],
    shape: Shape,
}

impl<'a> Encoded<'a> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path.
    pub fn open(bytes: &'a [u8], _mode: Mode, _switches: Switches) -> Result<Self> {
        let shape = jpeg::shape(bytes)?;
        Ok(Self { bytes, shape })
    }

    /// Returns the size of the whole image, once decoded.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Decodes at least `wanted` into `frame`; returns the region that the frame holds.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path.
    pub fn decode(&self, _wanted: Region, frame: &mut Frame) -> Result<Region> {
        jpeg::decode(self.bytes, frame)?;
        Ok(Region::whole(self.shape))
    }
}
