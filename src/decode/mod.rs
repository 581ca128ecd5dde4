//! Decoders: encoded bytes to pixels, bit for bit as Pillow's, or as torchvision's.
//!
//! Owns the choice of a decoder, by the bytes and never by the file's name. Refuses to open files. Invariant:
//! decoded pixels equal those of the requested [`Library`]; what that library refuses is refused.

mod colour;
mod format;
mod jpeg;
mod orientation;
mod png;
mod reading;
mod webp;

pub use format::Format;
pub use jpeg::Draft;
pub use reading::{Library, Reading, Switches};

use crate::image::{Frame, Region, Shape};
use crate::{Error, Result};

/// The channels that an image is decoded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Red, green and blue: Pillow's `convert("RGB")`, or the mode `RGB` of `decode_image`.
    Rgb,
    /// One channel: Pillow's `convert("L")`, or the mode `GRAY` of `decode_image`.
    Grey,
    /// The file's own, grey or RGB: the default of `decode_image`.
    Unchanged,
    /// The file's own, with grey expanded to equal red, green and blue: the result of broadcasting a grey
    /// tensor against one value per channel.
    Spread,
}

impl Mode {
    /// Returns the bytes of a pixel, if it is the same for all files.
    pub fn channels(self) -> Option<usize> {
        match self {
            Self::Rgb | Self::Spread => Some(3),
            Self::Grey => Some(1),
            Self::Unchanged => None,
        }
    }

    /// Returns true if only files that are grey or RGB themselves are decoded.
    fn keeps_kind(self) -> bool {
        matches!(self, Self::Unchanged | Self::Spread)
    }
}

/// An encoded image whose header was read.
#[derive(Debug)]
pub struct Encoded<'a> {
    bytes: &'a [u8],
    reading: Reading,
    header: Header,
}

/// The header of an encoded image.
#[derive(Debug)]
enum Header {
    Jpeg(jpeg::Header),
    Png(png::Header),
    WebP(webp::Header),
}

impl<'a> Encoded<'a> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], without a path: what is not decoded natively, and why.
    pub fn open(bytes: &'a [u8], reading: Reading, switches: Switches) -> Result<Self> {
        let header = match Format::of(bytes) {
            Some(Format::Jpeg) => Header::Jpeg(jpeg::Header::read(bytes, reading, switches)?),
            Some(Format::Png) => Header::Png(png::Header::read(bytes, reading, switches)?),
            Some(Format::WebP) => Header::WebP(webp::Header::read(bytes, reading, switches)?),
            Some(other) => {
                return Err(Error::decode(format!(
                    "native code does not decode {other}"
                )));
            }
            None if bytes.is_empty() => {
                return Err(Error::decode("the file is empty, or cannot be read"));
            }
            None => return Err(Error::decode("unknown image format")),
        };
        Ok(Self {
            bytes,
            reading,
            header,
        })
    }

    /// Decodes a draft of the image.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], without a path: it is not a JPEG.
    pub fn drafted(self, draft: Draft) -> Result<Self> {
        let Header::Jpeg(header) = self.header else {
            return Err(Error::decode("only a JPEG is decoded as a draft"));
        };
        Ok(Self {
            header: Header::Jpeg(header.drafted(draft)),
            ..self
        })
    }

    /// Returns the shape of the whole image, once decoded.
    pub fn shape(&self) -> Shape {
        let mode = self.reading.mode;
        match &self.header {
            Header::Jpeg(header) => header.shape(mode),
            Header::Png(header) => header.shape(mode),
            Header::WebP(header) => header.shape(mode),
        }
    }

    /// Checks that the file does not ask for its image to be rotated.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], without a path: it does, or in a way that is not understood here.
    pub fn expect_upright(&self) -> Result<()> {
        let format = match &self.header {
            Header::Jpeg(_) => Format::Jpeg,
            Header::Png(_) => Format::Png,
            Header::WebP(_) => Format::WebP,
        };
        if orientation::is_upright(self.bytes, format) {
            return Ok(());
        }
        Err(Error::decode("its EXIF or XMP may ask for a rotation"))
    }

    /// Decodes at least `wanted`, which must lie in the image, into `frame`; returns the region that the
    /// frame holds.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], without a path: damaged or truncated.
    pub fn decode(&self, wanted: Region, frame: &mut Frame) -> Result<Region> {
        let wanted = match wanted.height.min(wanted.width) {
            0 => Region::whole(self.shape()), // no pixel is wanted, but damage must be detected
            _ => wanted,
        };
        match &self.header {
            Header::Jpeg(header) => header.decode(self.bytes, self.reading, wanted, frame),
            Header::Png(header) => header.decode(self.bytes, self.reading.mode, frame),
            Header::WebP(header) => header.decode(self.bytes, self.reading.mode, frame),
        }
    }
}
