//! Decodes WAV, FLAC, MP3 and Ogg Vorbis, recognised by their first bytes.
//!
//! Owns the header of a recording (sample rate, channels, frames), the span of frames that is the sample, and
//! its layout. WAV is decoded here. FLAC, MP3 and Vorbis are demuxed here, with every checksum verified, and
//! their packets are decoded by symphonia, whose own demuxers skip damaged frames silently. Never resamples.
//! Invariant: WAV and FLAC equal libsndfile's samples bit for bit; MP3 and Vorbis have its length; damaged files
//! are refused.

mod decoder;
mod flac;
mod flac_frame;
mod mp3;
mod mp3_frame;
mod ogg;
mod pcm;
mod planes;
mod vorbis;
mod vorbis_codebooks;
mod wav;

use std::ops::Range;

use super::header::nothing;
use super::{Array, Header, Shapes, Target, headers};
use crate::column::{Blobs, Look};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use planes::Planes;

pub use planes::Depth;

/// Bytes that identify the format.
const FIRST_BYTES: u64 = 64;
/// Maximum of channels that libsndfile reads.
const MOST_CHANNELS: usize = 1024;

/// A span of frames, clipped to the recording.
#[derive(Clone, Copy, Debug, Default)]
pub enum Span {
    /// The whole recording.
    #[default]
    All,
    /// By frames.
    Frames {
        /// The first frame; negative numbers count from the end.
        start: i64,
        /// Number of frames; None for all that follow.
        count: Option<u64>,
    },
    /// By time, converted as librosa does: `int(seconds * rate)`.
    Seconds {
        /// Start, in seconds.
        offset: f64,
        /// Length, in seconds; None for up to the end.
        duration: Option<f64>,
    },
}

impl Span {
    /// Returns the range of frames within a recording of `frames` frames at `rate` per second.
    #[allow(clippy::cast_sign_loss)] // negative times become 0
    fn of(self, frames: u64, rate: u32) -> Range<u64> {
        let in_time = |seconds: f64| (seconds * f64::from(rate)) as u64; // rounds down, saturates
        let (start, count) = match self {
            Span::All => (0, None),
            Span::Frames { start, count } if start < 0 => {
                (frames.saturating_add_signed(start), count)
            }
            Span::Frames { start, count } => (start.unsigned_abs(), count),
            Span::Seconds { offset, duration } => (in_time(offset), duration.map(in_time)),
        };
        let start = start.min(frames);
        let end = count.map_or(frames, |count| start.saturating_add(count).min(frames));
        start..end
    }
}

/// The layout of samples.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Element type.
    pub depth: Depth,
    /// True for the mean of the channels, of shape `(frames,)`; otherwise samples are `(channels, frames)`.
    pub mono: bool,
}

/// The header of a recording.
#[derive(Clone, Debug)]
struct Recording {
    format: Format,
    /// Frames per second.
    rate: u32,
    channels: usize,
    /// Number of frames, known without decoding.
    frames: u64,
}

#[derive(Clone, Debug)]
enum Format {
    Wav(wav::Data),
    Flac,
    Mp3,
    Vorbis,
}

impl Recording {
    fn read(look: &mut Look<'_>) -> Result<Recording> {
        let first = look.read(0..FIRST_BYTES)?;
        let recording = match first.as_slice() {
            [b'R', b'I', b'F', b'F' | b'X', ..] | [b'R', b'F', b'6', b'4', ..] => wav::read(look)?,
            [b'O', b'g', b'g', b'S', ..] => vorbis::read(look)?,
            _ => {
                let start = id3_len(&first);
                let head = look.read(start..start + 4)?;
                match head.as_slice() {
                    b"fLaC" => flac::read(look, start)?,
                    [0xFF, second, ..] if second & 0xE0 == 0xE0 => mp3::read(look, start)?,
                    _ => {
                        return Err(Error::decode(
                            "it is not a WAV, FLAC, MP3 or Ogg Vorbis file: its first bytes match none of them",
                        ));
                    }
                }
            }
        };
        if recording.rate == 0 || i32::try_from(recording.rate).is_err() {
            let reason = format!("a recording of {} frames a second", recording.rate);
            return Err(Error::decode(reason));
        }
        if recording.channels == 0 || recording.channels > MOST_CHANNELS {
            let reason = format!("a recording of {} channels", recording.channels);
            return Err(Error::decode(reason));
        }
        Ok(recording)
    }

    fn is_float(&self) -> bool {
        match &self.format {
            Format::Wav(data) => data.encoding.is_float(),
            Format::Flac => false,
            Format::Mp3 | Format::Vorbis => true,
        }
    }
}

/// Samples in audio files.
#[derive(Debug)]
pub struct Audio {
    files: Vec<Header<Recording>>,
    shapes: Shapes,
    /// One for all files, or one for each.
    spans: Vec<Span>,
    output: Output,
}

impl Audio {
    /// Reads the headers of all files; returns the format and the bytes with their stamps.
    ///
    /// `spans` has one entry for all files, or one per file. If `rate` is given, a file with another one is
    /// refused when its sample is decoded.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], [`Error::Read`]: none of the files can be read; those of [`headers`].
    pub fn open(
        blobs: &Blobs,
        spans: Vec<Span>,
        output: Output,
        rate: Option<u32>,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(Audio, Blobs)> {
        let (blobs, mut files) = headers(blobs, Recording::read, tick)?;
        if !files.iter().any(|file| file.ok().is_some()) {
            return Err(nothing(&files, &blobs, "there is no file to read"));
        }
        for file in &mut files {
            let refusal = match file.ok() {
                Some(found) => refusal(found, output, rate),
                None => None,
            };
            if let Some(reason) = refusal {
                *file = Header::Broken(reason.into());
            }
        }
        let mut audio = Audio {
            files,
            shapes: Shapes::default(),
            spans,
            output,
        };
        let shapes = audio.files.iter().enumerate().map(|(index, file)| {
            let recording = file.ok()?;
            let range = audio.range(index, recording);
            let frames = usize::try_from(range.end - range.start).ok()?;
            Some(if output.mono {
                vec![frames]
            } else {
                vec![recording.channels, frames]
            })
        });
        audio.shapes = shapes.collect();
        Ok((audio, blobs))
    }

    /// Returns the sample rate of each recording; None where a file cannot be used.
    pub fn rates(&self) -> impl Iterator<Item = Option<u32>> {
        self.files
            .iter()
            .map(|file| file.ok().map(|found| found.rate))
    }

    /// Returns the range of frames of the sample at `index`.
    fn range(&self, index: usize, recording: &Recording) -> Range<u64> {
        let span = match self.spans.as_slice() {
            [span] => *span,
            all => all.get(index).copied().unwrap_or_default(),
        };
        span.of(recording.frames, recording.rate)
    }
}

/// Returns the reason why a recording does not fit the requested output.
fn refusal(recording: &Recording, output: Output, rate: Option<u32>) -> Option<String> {
    if let Some(rate) = rate
        && rate != recording.rate
    {
        return Some(format!(
            "its sample rate is {}, but rate={rate} was requested; resample it first",
            recording.rate
        ));
    }
    if output.depth.is_float() {
        return None;
    }
    let name = output.depth.dtype().name();
    if recording.is_float() {
        return Some(format!(
            "its samples are floats, which have no scale as {name}; use dtype=float32"
        ));
    }
    output
        .mono
        .then(|| format!("the mean of its channels is not an {name}; use dtype=float32"))
}

impl Array for Audio {
    fn dtype(&self) -> Dtype {
        self.output.depth.dtype()
    }

    fn shapes(&self) -> Option<&Shapes> {
        Some(&self.shapes)
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        self.files[index].part(|recording| match &recording.format {
            Format::Wav(data) => data.bytes(self.range(index, recording)),
            _ => Blobs::ALL,
        })
    }

    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let recording = self.files[index].known()?;
        let range = self.range(index, recording);
        let out = target.shaped(self.shapes.get(index).unwrap_or(&[]))?;
        if let Format::Wav(data) = &recording.format {
            return pcm::write(data.encoding, bytes, recording.channels, self.output, out);
        }
        let mut planes = Planes::new(out, self.output, recording.channels, range);
        match &recording.format {
            Format::Wav(_) => Ok(()),
            Format::Flac => flac::decode(bytes, recording, &mut planes),
            Format::Mp3 => mp3::decode(bytes, recording, &mut planes),
            Format::Vorbis => vorbis::decode(bytes, recording, &mut planes),
        }
    }
}

/// Returns the size of the `ID3v2` tag at the start of `bytes`; 0 if there is none.
fn id3_len(bytes: &[u8]) -> u64 {
    let &[b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = bytes else {
        return 0;
    };
    let size = [a, b, c, d]
        .iter()
        .fold(0, |size, &seven| size << 7 | u64::from(seven & 0x7F));
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    10 + size + footer
}

/// Returns the bytes without an `ID3v1` tag at their end.
fn without_id3_end(bytes: &[u8]) -> &[u8] {
    match bytes.split_last_chunk::<128>() {
        Some((rest, [b'T', b'A', b'G', ..])) => rest,
        _ => bytes,
    }
}
