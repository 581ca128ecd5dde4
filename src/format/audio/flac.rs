//! FLAC (RFC 9639): metadata blocks, the first of them STREAMINFO, then frames.
//!
//! Supports 8, 16 and 24 bits per sample. The checksums of all frames are verified; only frames within the
//! span are decoded. Refuses a stream whose length differs from STREAMINFO.

use symphonia_core::audio::{Audio, GenericAudioBufferRef};

use super::decoder::{Codec, with_decoder};
use super::flac_frame::{Frame, Frames};
use super::planes::Planes;
use super::{Format, Recording, id3_len, without_id3_end};
use crate::column::Look;
use crate::error::{Error, Result};

/// Bytes of the STREAMINFO block.
const STREAMINFO: usize = 34;
/// Minimum bytes of a frame: a header, one constant subframe, a checksum.
const SHORTEST_FRAME: u64 = 10;

/// The fields of STREAMINFO.
struct Info {
    rate: u32,
    channels: usize,
    bits: u32,
    /// Maximum of samples in a frame.
    largest: u64,
    /// None if the encoder did not know it.
    frames: Option<u64>,
}

impl Info {
    /// Parses STREAMINFO of a stream that begins with `fLaC`.
    fn parse(bytes: &[u8]) -> Result<Info> {
        let Some(&[0 | 0x80, 0, 0, 34]) = bytes.get(4..8).and_then(<[u8]>::first_chunk) else {
            return Err(Error::decode("it does not begin with STREAMINFO"));
        };
        let Some(fields) = bytes.get(18..26).and_then(<[u8]>::first_chunk) else {
            return Err(Error::decode("its header is cut off"));
        };
        let fields = u64::from_be_bytes(*fields);
        let frames = fields & 0xF_FFFF_FFFF;
        let info = Info {
            largest: u64::from(u16::from_be_bytes([bytes[10], bytes[11]])),
            rate: (fields >> 44) as u32,
            channels: (fields >> 41 & 7) as usize + 1,
            bits: (fields >> 36 & 31) as u32 + 1,
            frames: (frames > 0).then_some(frames),
        };
        if !matches!(info.bits, 8 | 16 | 24) {
            let bits = info.bits;
            return Err(Error::decode(format!(
                "its samples have {bits} bits; supported are 8, 16 and 24"
            )));
        }
        Ok(info)
    }

    /// Returns an error for a frame that contradicts STREAMINFO.
    fn check(&self, frame: &Frame) -> Result<()> {
        let same = frame.channels == self.channels
            && frame.rate.is_none_or(|rate| rate == self.rate)
            && frame.bits.is_none_or(|bits| bits == self.bits);
        if same {
            return Ok(());
        }
        Err(Error::decode("its frames contradict its STREAMINFO"))
    }
}

/// Reads the header of a file whose stream begins at `start`.
pub(super) fn read(look: &mut Look<'_>, start: u64) -> Result<Recording> {
    let head = look.read(start..start + 8 + STREAMINFO as u64)?;
    let info = Info::parse(&head)?;
    let frames = match info.frames {
        Some(frames) if frames <= look.len() / SHORTEST_FRAME * info.largest => frames,
        Some(frames) => {
            let len = look.len();
            return Err(Error::decode(format!(
                "its header announces {frames} frames, more than its {len} bytes can hold"
            )));
        }
        None => count(&look.read(0..u64::MAX)?, &info)?,
    };
    Ok(Recording {
        format: Format::Flac,
        rate: info.rate,
        channels: info.channels,
        frames,
    })
}

/// Counts the frames of a stream whose header does not have their number.
fn count(bytes: &[u8], info: &Info) -> Result<u64> {
    let (_, mut frames) = open(bytes)?;
    let mut count = 0;
    while let Some((frame, _)) = frames.next()? {
        info.check(&frame)?;
        count += frame.samples;
    }
    Ok(count)
}

/// Returns the bytes of STREAMINFO, and the frames.
fn open(bytes: &[u8]) -> Result<(&[u8; STREAMINFO], Frames<'_>)> {
    let cut = || Error::decode("its metadata are cut off");
    let stream = bytes.get(id3_len(bytes) as usize..).ok_or_else(cut)?;
    let info = stream.get(8..).and_then(<[u8]>::first_chunk);
    let info = info.ok_or_else(cut)?;
    let mut at = 4;
    loop {
        let &[kind, a, b, c] = stream
            .get(at..at + 4)
            .and_then(<[u8]>::first_chunk)
            .ok_or_else(cut)?;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        let block = stream.get(at + 4..at + 4 + len).ok_or_else(cut)?;
        if !is_sound(kind & 0x7F, block, at == 4) {
            return Err(Error::decode("a block of its metadata is damaged"));
        }
        at += 4 + len;
        if kind & 0x80 != 0 {
            break;
        }
    }
    let frames = without_id3_end(stream.get(at..).ok_or_else(cut)?);
    Ok((info, Frames::new(frames)))
}

/// Returns true if the fields of a metadata block (RFC 9639, section 8) of type `kind` fill it; `is_first` is true for
/// the stream's first. Their content is not used, but libFLAC refuses files with damaged blocks.
fn is_sound(kind: u8, block: &[u8], is_first: bool) -> bool {
    let mut rest = Rest(block);
    let fits = match kind {
        0 => return is_first,
        3 => return block.len().is_multiple_of(18),
        4 => comments(&mut rest),
        5 => cue_sheet(&mut rest),
        6 => picture(&mut rest),
        0x7F => None,
        _ => return true,
    };
    fits.is_some() && rest.0.is_empty()
}

/// The unparsed rest of a block.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, len: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<usize> {
        self.take(1).map(|byte| usize::from(byte[0]))
    }

    fn little(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    fn big(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes) as usize)
    }
}

fn comments(rest: &mut Rest<'_>) -> Option<()> {
    let vendor = rest.little()?;
    rest.take(vendor)?;
    for _ in 0..rest.little()? {
        let len = rest.little()?;
        rest.take(len)?;
    }
    Some(())
}

fn cue_sheet(rest: &mut Rest<'_>) -> Option<()> {
    rest.take(395)?;
    for _ in 0..rest.byte()? {
        rest.take(35)?;
        let points = rest.byte()?;
        rest.take(12 * points)?;
    }
    Some(())
}

fn picture(rest: &mut Rest<'_>) -> Option<()> {
    rest.take(4)?;
    for _ in 0..2 {
        let len = rest.big()?;
        rest.take(len)?;
    }
    rest.take(16)?;
    let len = rest.big()?;
    rest.take(len)?;
    Some(())
}

/// Returns STREAMINFO without the fields that differ between recordings of one kind, so that they share a decoder.
fn setup(stream: &[u8; STREAMINFO]) -> [u8; STREAMINFO] {
    let mut setup = *stream;
    setup[4..10].fill(0); // frame sizes in bytes
    setup[13] &= 0xF0; // length, then MD5
    setup[14..].fill(0);
    setup
}

/// Decodes the frames of the span.
pub(super) fn decode(bytes: &[u8], recording: &Recording, planes: &mut Planes<'_>) -> Result<()> {
    let (stream, mut frames) = open(bytes)?;
    let info = Info::parse(&bytes[id3_len(bytes) as usize..])?;
    let mut count = 0;
    with_decoder(Codec::Flac, &setup(stream), |decoder| {
        while let Some((frame, packet)) = frames.next()? {
            info.check(&frame)?;
            count += frame.samples;
            if planes.skips(frame.samples) {
                planes.skip(frame.samples);
                continue;
            }
            match decoder.decode(packet)? {
                GenericAudioBufferRef::S32(block) if block.frames() as u64 == frame.samples => {
                    planes.ints(block.frames(), |channel| block.plane(channel));
                }
                _ => return Err(Error::decode("a frame of its sound is damaged")),
            }
        }
        Ok(())
    })?;
    if count == recording.frames {
        return Ok(());
    }
    Err(Error::decode(format!(
        "its header announces {} frames, but it has {count}",
        recording.frames
    )))
}
