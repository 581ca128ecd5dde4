//! Vorbis (Vorbis I, section 4, and A.2) in Ogg.
//!
//! Supports one and two channels. The length is the granule position of the last page. Refuses a stream whose
//! positions do not match its packets: it was cut out of a longer one.

use symphonia_core::audio::{Audio, GenericAudioBufferRef};

use super::decoder::{Codec, Decoder, with_decoder};
use super::ogg::{Page, Pages, last_position};
use super::planes::Planes;
use super::{Format, Recording, vorbis_codebooks};
use crate::column::Look;
use crate::error::{Error, Result};
use crate::memory::fallible::reserve;

/// Bytes of the first page, including its header.
const FIRST_PAGE: u64 = 28 + IDENTIFICATION as u64;
/// Maximum bytes of a usual page.
const USUAL_PAGE: u64 = 8192;
/// Bytes of the longest page, including its header.
const LONGEST_PAGE: u64 = 27 + 255 + 255 * 255;
/// The decoder is not exact where more channels are coupled.
const MOST_CHANNELS: usize = 2;
/// Maximum bytes of decoded codebooks; usual encoders need some hundred kilobytes.
const MOST_TABLES: u64 = 64 << 20;
/// Bytes of the identification header, which is alone on its page.
const IDENTIFICATION: usize = 30;

/// Reads the header of a file that begins with a page.
pub(super) fn read(look: &mut Look<'_>) -> Result<Recording> {
    let (mut rate, mut channels, mut largest) = (0, 0, 0);
    let first = look.read(0..FIRST_PAGE)?;
    Pages::new(&first).next(|packet| {
        let ident: Option<&[u8; IDENTIFICATION]> = packet.try_into().ok();
        let ident = ident.filter(|ident| ident.starts_with(b"\x01vorbis\0\0\0\0"));
        let ident = ident
            .ok_or_else(|| Error::decode("it is an Ogg file whose first stream is not Vorbis"))?;
        channels = usize::from(ident[11]);
        rate = u32::from_le_bytes([ident[12], ident[13], ident[14], ident[15]]);
        largest = 1_u64 << (ident[28] >> 4);
        Ok(())
    })?;
    let len = look.len();
    let mut end = look.read(len.saturating_sub(USUAL_PAGE)..len)?;
    if last_position(&end).is_none() {
        end = look.read(len.saturating_sub(LONGEST_PAGE)..len)?;
    }
    let frames = last_position(&end)
        .ok_or_else(|| Error::decode("it is cut off: its last page is missing"))?;
    if channels > MOST_CHANNELS {
        return Err(Error::decode(format!(
            "it has {channels} channels; for Vorbis, one and two are supported"
        )));
    }
    if frames > len.saturating_mul(largest / 2) {
        return Err(Error::decode(format!(
            "its last page is at frame {frames}, more than its {len} bytes can hold"
        )));
    }
    Ok(Recording {
        format: Format::Vorbis,
        rate,
        channels,
        frames,
    })
}

/// Decodes up to the end of the span.
pub(super) fn decode(bytes: &[u8], recording: &Recording, planes: &mut Planes<'_>) -> Result<()> {
    let mut pages = Pages::new(bytes);
    let mut headers = 0;
    let mut setup = Vec::new();
    while headers < 3 {
        let page = pages.next(|packet| {
            match headers {
                0 if packet.len() == IDENTIFICATION => setup.extend_from_slice(packet),
                1 if packet.starts_with(b"\x03vorbis") => {}
                2 if vorbis_codebooks::bytes(packet) > MOST_TABLES => {
                    return Err(Error::decode(
                        "its codebooks announce more than 64 MiB of tables",
                    ));
                }
                2 => {
                    reserve(&mut setup, packet.len())?;
                    setup.extend_from_slice(packet);
                }
                _ => return Err(Error::decode("its headers are damaged")),
            }
            headers += 1;
            Ok(())
        })?;
        if page.is_none() {
            return Err(Error::decode("it has no sound"));
        }
    }
    with_decoder(Codec::Vorbis, &setup, |decoder| {
        let mut sound = Sound {
            decoder,
            planes,
            frames: recording.frames,
            count: None,
        };
        while let Some(page) = pages.next(|packet| sound.packet(packet))? {
            sound.check(&page)?;
            if sound.planes.is_full() {
                break;
            }
        }
        Ok(())
    })
}

/// The decoding of a stream.
struct Sound<'a, 'b> {
    decoder: &'a mut Decoder,
    planes: &'a mut Planes<'b>,
    /// Frames of the stream, from its header.
    frames: u64,
    /// Frames decoded so far; None before the first packet, which yields none.
    count: Option<u64>,
}

impl Sound<'_, '_> {
    fn packet(&mut self, packet: &[u8]) -> Result<()> {
        let GenericAudioBufferRef::F32(block) = self.decoder.decode(packet)? else {
            return Err(Error::decode("a packet of its sound is damaged"));
        };
        let Some(count) = &mut self.count else {
            self.count = Some(0);
            return Ok(());
        };
        let wanted = (self.frames - self.frames.min(*count)).min(block.frames() as u64);
        *count += block.frames() as u64;
        self.planes
            .floats(wanted as usize, |channel| block.plane(channel))
    }

    /// Returns an error for a page whose position does not match its packets.
    fn check(&self, page: &Page<'_>) -> Result<()> {
        let count = self.count.unwrap_or(0);
        match page.position {
            None => Ok(()),
            Some(position) if page.is_last && position <= count => Ok(()),
            Some(position) if position == count => Ok(()),
            Some(_) => Err(Error::decode(
                "the positions of its pages do not match their packets: was it cut out of a longer stream?",
            )),
        }
    }
}
