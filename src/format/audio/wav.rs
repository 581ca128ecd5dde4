//! WAV: RIFF (or RF64) chunks; `fmt ` describes the frames, `data` holds them.
//!
//! Source: Multimedia Programming Interface (1991), EBU Tech 3306. Supports integers of 8, 16, 24 and 32 bits
//! and floats of 32 and 64, plain or `WAVE_FORMAT_EXTENSIBLE`. A placeholder length, as written to a pipe,
//! means up to the end of the file. Refuses compressed audio, RIFX, and files that libsndfile refuses or reads
//! differently: two `data` chunks, a `PEAK` chunk of unexpected size.

use std::ops::Range;

use super::pcm::Encoding;
use super::{Format, Recording};
use crate::column::Look;
use crate::error::{Error, Result};

/// Bytes per read while searching for chunks.
const BUFFER: u64 = 512;
/// Maximum of chunks.
const MOST_CHUNKS: usize = 4096;
/// A length of at least this, if the file is shorter, is a placeholder.
const OPEN: u64 = 0x7FFF_0000;
/// The common end of the GUIDs of sub-formats (`KSDATAFORMAT_SUBTYPE_*`).
const GUID: &[u8; 14] = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71";

/// The location and encoding of the frames.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) encoding: Encoding,
    /// Bytes per frame.
    frame: u64,
    start: u64,
}

impl Data {
    /// Returns the byte range of some frames.
    pub(super) fn bytes(&self, frames: Range<u64>) -> Range<u64> {
        self.start + frames.start * self.frame..self.start + frames.end * self.frame
    }
}

/// Reads a file through a buffer.
struct Buffer<'a, 'b> {
    look: &'a mut Look<'b>,
    bytes: Vec<u8>,
    start: u64,
}

impl Buffer<'_, '_> {
    /// Returns up to `len` bytes from `at` on; fewer at the end of the file.
    fn get(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        if at < self.start || at + len > self.start + self.bytes.len() as u64 {
            self.bytes = self.look.read(at..at + len.max(BUFFER))?;
            self.start = at;
        }
        let bytes = &self.bytes[(at - self.start) as usize..];
        Ok(&bytes[..bytes.len().min(len as usize)])
    }

    /// Returns name and length of the chunk at `at`; None at the end of the file.
    fn chunk(&mut self, at: u64) -> Result<Option<([u8; 4], u64)>> {
        let chunk = self.get(at, 8)?;
        let (Some(id), Some(size)) = (chunk.first_chunk(), chunk.get(4..8)) else {
            return Ok(None);
        };
        let size = size
            .iter()
            .rev()
            .fold(0, |size, &byte| size << 8 | u64::from(byte));
        Ok(Some((*id, size)))
    }
}

/// The fields of a `fmt ` chunk.
struct Layout {
    encoding: Encoding,
    channels: usize,
    rate: u32,
    frame: u64,
}

impl Layout {
    fn parse(chunk: &[u8]) -> Result<Layout> {
        let Some(&[f0, f1, c0, c1, r0, r1, r2, r3, _, _, _, _, a0, a1, b0, b1]) =
            chunk.first_chunk()
        else {
            return Err(Error::decode("its \"fmt \" chunk is too short"));
        };
        let (mut format, bits) = (u16::from_le_bytes([f0, f1]), u16::from_le_bytes([b0, b1]));
        if format == 0xFFFE {
            let Some((&[s0, s1], GUID)) = chunk
                .get(24..40)
                .and_then(|guid| Some((guid.first_chunk()?, guid.last_chunk()?)))
            else {
                return Err(Error::decode("its sub-format is unknown"));
            };
            format = u16::from_le_bytes([s0, s1]);
        }
        let encoding = match (format, bits) {
            (1, 8) => Encoding::U8,
            (1, 16) => Encoding::S16,
            (1, 24) => Encoding::S24,
            (1, 32) => Encoding::S32,
            (3, 32) => Encoding::F32,
            (3, 64) => Encoding::F64,
            _ => {
                let name = match format {
                    1 => "PCM",
                    2 | 0x11 => "ADPCM",
                    3 => "IEEE float",
                    6 => "A-law",
                    7 => "mu-law",
                    0x55 => "MP3",
                    _ => "unknown",
                };
                return Err(Error::decode(format!(
                    "its samples are {name} of {bits} bits (format {format:#x}); supported are integers of \
                     8, 16, 24 and 32 bits and floats of 32 and 64"
                )));
            }
        };
        let channels = usize::from(u16::from_le_bytes([c0, c1]));
        let frame = channels * encoding.bytes();
        if frame != usize::from(u16::from_le_bytes([a0, a1])) {
            return Err(Error::decode(format!(
                "its header says {channels} channels of {bits} bits, but another number of bytes per frame"
            )));
        }
        Ok(Layout {
            encoding,
            channels,
            rate: u32::from_le_bytes([r0, r1, r2, r3]),
            frame: frame as u64,
        })
    }
}

/// Reads the header of a file that begins with `RIFF`, `RF64` or `RIFX`.
pub(super) fn read(look: &mut Look<'_>) -> Result<Recording> {
    let len = look.len();
    let mut file = Buffer {
        look,
        bytes: Vec::new(),
        start: 0,
    };
    let cut = || Error::decode("its header is cut off");
    let &[r0, r1, r2, r3, s0, s1, s2, s3, w0, w1, w2, w3] =
        file.get(0, 12)?.first_chunk().ok_or_else(cut)?;
    let (name, riff) = ([r0, r1, r2, r3], u32::from_le_bytes([s0, s1, s2, s3]));
    if [w0, w1, w2, w3] != *b"WAVE" || name == *b"RIFX" {
        return Err(Error::decode(
            "it is a RIFF file, but not a little-endian WAV",
        ));
    }
    let (mut layout, mut large) = (None, None);
    let (mut at, mut seen) = (12, 0);
    let (layout, size) = loop {
        let Some((id, size)) = file.chunk(at)? else {
            return Err(Error::decode("it has no data: its header is cut off"));
        };
        let body = at + 8;
        match (&id, &layout) {
            (b"ds64", _) if name == *b"RF64" && at == 12 => {
                let sizes: &[u8; 28] = file.get(body, 28)?.first_chunk().ok_or_else(cut)?;
                if size != 28 || sizes[24..] != [0; 4] {
                    return Err(Error::decode("its chunk \"ds64\" has a table of sizes"));
                }
                large = sizes[8..].first_chunk().copied().map(u64::from_le_bytes);
            }
            _ if name == *b"RF64" && large.is_none() => {
                return Err(Error::decode("it is RF64 without sizes"));
            }
            (b"fmt ", None) => layout = Some(Layout::parse(file.get(body, size.min(40))?)?),
            (b"data", Some(_)) => {
                at = body;
                break (layout.ok_or_else(cut)?, size);
            }
            (b"PEAK", Some(layout)) if size == 8 + 8 * layout.channels as u64 => {}
            (b"fmt " | b"data" | b"PEAK" | b"RIFF" | b"RIFX" | b"RF64", _) => {
                return Err(Error::decode(format!(
                    "its chunk {:?} is in the wrong place, or of the wrong size",
                    String::from_utf8_lossy(&id)
                )));
            }
            _ if is_name(id) => {}
            _ => return Err(Error::decode("bytes of its header are not a chunk")),
        }
        at = body + size + size % 2;
        seen += 1;
        if seen > MOST_CHUNKS {
            return Err(Error::decode("its header has more than 4096 chunks"));
        }
    };
    let rest = len - at.min(len);
    let size = match (size, large) {
        (0xFFFF_FFFF, Some(large)) => large,
        (size, Some(large)) if size != large => {
            return Err(Error::decode("it has two sizes: one of RIFF, one of RF64"));
        }
        (0, None) if riff == 8 => rest,
        (open, None) if open >= OPEN && open > rest => rest,
        (size, _) => size,
    };
    if size > rest {
        return Err(Error::decode(format!(
            "it is cut off: its header announces {size} bytes of sound, but {rest} follow"
        )));
    }
    check_end(&mut file, at + size + size % 2, layout.channels, size == 0)?;
    Ok(Recording {
        rate: layout.rate,
        channels: layout.channels,
        frames: size.checked_div(layout.frame).unwrap_or(0),
        format: Format::Wav(Data {
            encoding: layout.encoding,
            frame: layout.frame,
            start: at,
        }),
    })
}

/// Returns true if bytes can be the name of a chunk.
fn is_name(id: [u8; 4]) -> bool {
    id.iter().all(|byte| (0x20..0x7F).contains(byte))
}

/// Returns an error for chunks after the sound that contradict it.
fn check_end(file: &mut Buffer<'_, '_>, mut at: u64, channels: usize, empty: bool) -> Result<()> {
    for _ in 0..MOST_CHUNKS {
        if at >= file.look.len() {
            return Ok(());
        }
        let Some((id, size)) = file.chunk(at)? else {
            return Ok(());
        };
        match &id {
            b"PEAK" if size == 8 + 8 * channels as u64 => {}
            b"fmt " | b"data" | b"fact" | b"PEAK" | b"RIFF" | b"RIFX" => {
                return Err(Error::decode(format!(
                    "it has a chunk {:?} after its sound",
                    String::from_utf8_lossy(&id)
                )));
            }
            _ if is_name(id) => {}
            _ if empty => {
                return Err(Error::decode(
                    "its header announces no sound, and bytes follow: was its length never written?",
                ));
            }
            _ => return Ok(()),
        }
        at += 8 + size + size % 2;
    }
    Ok(())
}
