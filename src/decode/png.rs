//! PNG of every kind, converted as by Pillow's `convert`.
//!
//! Owns the interpretation of samples: palettes are looked up, 16 bits of colour lose the lower eight, 16
//! bits of plain grey are clipped to 255 (Pillow's `I;16` is a number, not a brightness), alpha and
//! transparent colours are dropped and not blended. Refuses animations, palettes that are too short for their
//! indices, and all damage: where Pillow overlooks a checksum, or leaves missing rows black, it decodes the
//! file itself. Invariant: pixels are Pillow's.

mod chunks;

use std::io::Cursor;

use self::chunks::Chunks;
use super::{Library, Mode, Reading, Switches, colour};
use crate::image::{Frame, Region, Shape, pillow_luma};
use crate::{Error, Result};

/// The header of a PNG.
#[derive(Clone, Debug)]
pub(super) struct Header {
    chunks: Chunks,
}

impl Header {
    /// Reads the header of `encoded`, and walks over its chunks.
    pub(super) fn read(encoded: &[u8], reading: Reading, switches: Switches) -> Result<Self> {
        let chunks = Chunks::read(encoded)?;
        let size = (u64::from(chunks.height), u64::from(chunks.width));
        switches.admit(size, encoded.len())?;
        // torchvision reads transparent colours only to drop them.
        let is_transparent = chunks.has_transparency && reading.library == Library::Pillow;
        if reading.mode.keeps_kind()
            && !matches!(
                (chunks.colour, chunks.depth, is_transparent),
                (0 | 2, 8, false)
            )
        {
            return Err(Error::decode(
                "native code decodes only PNGs of 8 bits, grey or RGB, unchanged",
            ));
        }
        if reading.library == Library::Torchvision && chunks.depth == 16 {
            return Err(Error::decode(
                "native code does not convert a PNG of 16 bits to 8",
            ));
        }
        if (reading.library, reading.mode) == (Library::Torchvision, Mode::Grey)
            && chunks.colour != 0
        {
            return Err(Error::decode(
                "native code does not convert a PNG of colours to grey",
            ));
        }
        Ok(Self { chunks })
    }

    /// Returns the size of the image once decoded.
    pub(super) fn shape(&self, mode: Mode) -> Shape {
        Shape {
            height: self.chunks.height as usize,
            width: self.chunks.width as usize,
            channels: match (mode, self.chunks.colour) {
                (Mode::Grey, _) | (Mode::Unchanged, 0) => 1,
                _ => 3,
            },
        }
    }

    /// Decodes the whole image into `frame`; returns its region.
    pub(super) fn decode(&self, encoded: &[u8], mode: Mode, frame: &mut Frame) -> Result<Region> {
        let shape = self.shape(mode);
        let bytes = self.pixel_bytes();
        frame.reset(shape.with_channels(bytes.max(shape.channels)))?;
        let samples = if bytes > shape.channels {
            frame.pixels_mut()
        } else {
            colour::tail(frame, bytes)
        };
        self.read_samples(encoded, samples)?;
        match (self.chunks.colour, self.chunks.depth, shape.channels) {
            (0, 1 | 2 | 4, channels) => {
                let full = 0xFF / (0xFF >> (8 - self.chunks.depth));
                spread(frame, channels, |[grey]: [u8; 1]| grey * full);
            }
            (0, 16, channels) => {
                spread(
                    frame,
                    channels,
                    |[high, low]: [u8; 2]| {
                        if high == 0 { low } else { 255 }
                    },
                );
            }
            (3, _, channels) => self.look_up(encoded, channels, frame)?,
            (4, 8, channels) => spread(frame, channels, |[grey, _]: [u8; 2]| grey),
            (4, _, channels) => spread(frame, channels, |[grey, _, _, _]: [u8; 4]| grey),
            (0, _, channels) => {
                if channels == 3 {
                    colour::repack(frame, |[grey]: [u8; 1]| [grey; 3]);
                }
            }
            (kind, depth, channels) => {
                match (kind, depth) {
                    (2, 16) => colour::repack(frame, |[r, _, g, _, b, _]: [u8; 6]| [r, g, b]),
                    (6, 8) => colour::repack(frame, |[r, g, b, _]: [u8; 4]| [r, g, b]),
                    (6, _) => colour::repack(frame, |[r, _, g, _, b, _, _, _]: [u8; 8]| [r, g, b]),
                    _ => {}
                }
                if channels == 1 {
                    colour::rgb_to_grey(frame);
                }
            }
        }
        Ok(Region::whole(shape))
    }

    /// Returns the bytes of a pixel of the file, once its samples are unpacked to bytes.
    fn pixel_bytes(&self) -> usize {
        let samples = match self.chunks.colour {
            0 | 3 => 1,
            2 => 3,
            4 => 2,
            _ => 4,
        };
        samples * usize::from(self.chunks.depth).div_ceil(8)
    }

    /// Reads the samples of each pixel, unchanged, but with at least a byte for each.
    fn read_samples(&self, encoded: &[u8], samples: &mut [u8]) -> Result<()> {
        let damaged =
            |error: png::DecodingError| Error::decode(format!("broken PNG file ({error})"));
        let mut options = png::DecodeOptions::default();
        options.set_ignore_adler32(false);
        options.set_skip_ancillary_crc_failures(false);
        options.set_ignore_text_chunk(true);
        options.set_ignore_iccp_chunk(true);
        let decoder = png::Decoder::new_with_options(Cursor::new(encoded), options);
        let mut reader = decoder.read_info().map_err(damaged)?;
        let packed_bytes = reader.output_buffer_size().unwrap_or(usize::MAX);
        let start = samples
            .len()
            .checked_sub(packed_bytes)
            .ok_or_else(|| Error::decode("its header changed while it was read"))?;
        if self.chunks.depth < 8 {
            samples[start..].fill(0); // the passes of an interlaced image set single bits
        }
        reader.next_frame(&mut samples[start..]).map_err(damaged)?;
        reader.finish().map_err(damaged)?;
        if self.chunks.depth < 8 {
            colour::unpack(
                samples,
                self.chunks.width as usize,
                usize::from(self.chunks.depth),
            );
        }
        Ok(())
    }

    /// Replaces indices by the palette's colours.
    fn look_up(&self, encoded: &[u8], channels: usize, frame: &mut Frame) -> Result<()> {
        let (colours, _) = encoded[self.chunks.palette.clone()].as_chunks::<3>();
        let highest = colour::tail(frame, 1).iter().max();
        if highest.is_some_and(|&index| usize::from(index) >= colours.len()) {
            return Err(Error::decode("its palette is too short for its pixels"));
        }
        if channels == 3 {
            colour::repack(frame, |[index]: [u8; 1]| colours[usize::from(index)]);
        } else {
            colour::repack(frame, |[index]: [u8; 1]| {
                [pillow_luma(colours[usize::from(index)])]
            });
        }
        Ok(())
    }
}

/// Expands pixels of one sample: grey, or equal red, green and blue.
fn spread<const FROM: usize>(
    frame: &mut Frame,
    channels: usize,
    change: impl Fn([u8; FROM]) -> u8,
) {
    if channels == 1 {
        colour::repack(frame, |pixel| [change(pixel)]);
    } else {
        colour::repack(frame, |pixel| [change(pixel); 3]);
    }
}
