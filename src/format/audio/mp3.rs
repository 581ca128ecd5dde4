//! MP3: consecutive frames, with optional tags before and after them.
//!
//! The length is that of libsndfile, which decodes MP3 through mpg123: without the padding in LAME's tag; in
//! a file without a tag, at most the samples that mpg123 estimates from the sizes of file and first frame. A
//! frame that needs main data of missing frames is silent, as in mpg123. Checksums of LAME are verified;
//! without them damage may go unnoticed. Refuses bytes between frames, truncated frames, changes of the
//! sample rate, layers I and II, and free-format streams.

use std::borrow::Cow;

use symphonia_core::audio::{Audio, GenericAudioBufferRef};
use symphonia_core::checksum::Crc16AnsiLe;
use symphonia_core::io::Monitor;

use super::decoder::{Codec, with_decoder};
use super::mp3_frame::{Frame, Tag};
use super::planes::Planes;
use super::{Format, Recording, id3_len, without_id3_end};
use crate::column::Look;
use crate::error::{Error, Result};
use crate::memory::fallible::push;

/// Delay of the decoder, in samples (mpg123's `GAPLESS_DELAY`).
const DECODER_DELAY: u64 = 529;
/// Bytes of the longest frame: 320 kbit/s at 32 kHz, or 160 at 8, with a byte of padding.
const LONGEST_FRAME: u64 = 2881;
/// Bytes of the shortest frame: 8 kbit/s at 24 kHz.
const SHORTEST_FRAME: u64 = 24;
/// Frames to decode before the first one that is needed: overlap and filters reach that far.
const LEAD: usize = 2;

/// The beginning of a stream.
struct Track {
    first: Frame,
    /// Offset of the first frame with sound.
    start: usize,
    tag: Option<Tag>,
}

impl Track {
    /// Parses the beginning of a stream.
    fn parse(bytes: &[u8]) -> Result<Track> {
        let first = Frame::parse(bytes).ok_or_else(|| {
            Error::decode("its first frame is not one of MPEG layer III with a bit rate")
        })?;
        let (mut start, mut tag) = (0, None);
        if Tag::is_in(&first, bytes) {
            let parsed = Tag::parse(&first, bytes).filter(|tag| tag.frames > 0);
            let damaged = || Error::decode("its tag is damaged, or announces no frames");
            tag = Some(parsed.ok_or_else(damaged)?);
            start = first.len;
        }
        Ok(Track { first, start, tag })
    }

    /// Returns the first sample that is sound, and their number, of `frames` frames in a file of `bytes` bytes.
    fn sound(&self, frames: u64, bytes: u64) -> Result<(u64, u64)> {
        let all = frames.saturating_mul(self.first.samples);
        let Some(tag) = self.tag else {
            return Ok((0, all.min(self.first.estimate(bytes))));
        };
        let (before, behind) = tag.padding;
        let first = before + DECODER_DELAY;
        match all.checked_sub(first.max(before + behind)) {
            Some(len) if len > 0 => Ok((first, len)),
            _ => Err(Error::decode("its tag announces more padding than samples")),
        }
    }
}

/// Returns the frames of sound, each with its offset.
fn frames(bytes: &[u8], track: &Track) -> Result<Vec<(usize, Frame)>> {
    let mut frames = Vec::new();
    let mut at = track.start;
    while at < bytes.len()
        && track
            .tag
            .is_none_or(|tag| tag.frames != frames.len() as u64)
    {
        let frame = Frame::parse(&bytes[at..]).filter(|frame| frame.is_like(&track.first));
        let Some(frame) = frame.filter(|frame| at + frame.len <= bytes.len()) else {
            break;
        };
        let len = frame.len;
        push(&mut frames, (at, frame))?;
        at += len;
    }
    let rest = &bytes[at..];
    let is_tag = rest.starts_with(b"APETAGEX") || rest.starts_with(b"LYRICSBEGIN");
    if rest.is_empty() || is_tag {
        return Ok(frames);
    }
    Err(Error::decode(format!(
        "the bytes after frame {} of its sound are not a frame",
        frames.len()
    )))
}

/// Reads the header of a file whose stream begins at `start`.
pub(super) fn read(look: &mut Look<'_>, start: u64) -> Result<Recording> {
    let track = Track::parse(&look.read(start..start + LONGEST_FRAME)?)?;
    let (count, size) = match track.tag.map(|tag| tag.frames) {
        Some(count) if count <= look.len() / SHORTEST_FRAME => (count, 0),
        Some(count) => {
            let len = look.len();
            return Err(Error::decode(format!(
                "its tag announces {count} frames, more than its {len} bytes can hold"
            )));
        }
        None => {
            let all = look.read(0..u64::MAX)?;
            let all = without_id3_end(&all);
            let stream = all.get(start as usize..).unwrap_or(&[]);
            let count = frames(stream, &track)?.len() as u64;
            if count < 2 {
                return Err(Error::decode("it is a single frame, without a tag"));
            }
            (count, all.len() as u64)
        }
    };
    Ok(Recording {
        format: Format::Mp3,
        rate: track.first.rate,
        channels: track.first.channels,
        frames: track.sound(count, size)?.1,
    })
}

/// Decodes the frames of the span, and earlier ones that they depend on.
pub(super) fn decode(bytes: &[u8], recording: &Recording, planes: &mut Planes<'_>) -> Result<()> {
    let all = without_id3_end(bytes);
    let stream = all.get(id3_len(bytes) as usize..).unwrap_or(&[]);
    let track = Track::parse(stream)?;
    let frames = frames(stream, &track)?;
    let (first, len) = track.sound(frames.len() as u64, all.len() as u64)?;
    let count = frames.len() as u64;
    if track.tag.is_some_and(|tag| tag.frames != count) || len != recording.frames {
        return Err(Error::decode(format!(
            "it has {count} frames, but its tag announces another number"
        )));
    }
    if let Some(checksum) = track.tag.and_then(|tag| tag.checksum) {
        let end = frames
            .last()
            .map_or(track.start, |(at, frame)| at + frame.len);
        let mut crc = Crc16AnsiLe::new(0);
        crc.process_buf_bytes(&stream[track.start..end]);
        if crc.crc() != checksum {
            return Err(Error::decode(
                "its sound is damaged: the encoder's checksum does not match",
            ));
        }
    }
    let samples = track.first.samples;
    let wanted = ((first + planes.first()) / samples) as usize;
    let real = wanted.min(frames.len()).saturating_sub(LEAD);
    let begin = lead(&frames, real);
    let setup = [
        &recording.rate.to_be_bytes()[..],
        &[recording.channels as u8],
    ]
    .concat();
    let (mut drop, mut kept) = (first as usize, 0);
    with_decoder(Codec::Mp3, &setup, |decoder| {
        for (place, (at, frame)) in frames.iter().enumerate() {
            let dropped = drop.min(samples as usize);
            drop -= dropped;
            if planes.is_full() {
                break;
            }
            if place < begin {
                planes.skip(samples - dropped as u64);
                continue;
            }
            let mut packet = Cow::Borrowed(&stream[*at..at + frame.len]);
            if place < real || frame.reservoir(&packet) > kept {
                packet = Cow::Owned(frame.muted(&packet, kept));
            }
            kept = (kept + frame.main()).min(frame.most_reservoir());
            match decoder.decode(&packet)? {
                GenericAudioBufferRef::F32(block) if block.frames() as u64 == samples => {
                    let plane = |channel| block.plane(channel)?.get(dropped..);
                    planes.floats(block.frames() - dropped, plane)?;
                }
                _ => return Err(Error::decode("a frame of its sound is damaged")),
            }
        }
        Ok(())
    })
}

/// Returns the frame to begin with, so that frame `real` finds all earlier main data that it may use.
fn lead(frames: &[(usize, Frame)], real: usize) -> usize {
    let (mut begin, mut bytes) = (real, 0);
    while begin > 0 && bytes < frames[begin - 1].1.most_reservoir() {
        begin -= 1;
        bytes += frames[begin].1.main();
    }
    begin
}
