//! Frames of MPEG audio layer III (ISO 11172-3 and 13818-3, and MPEG 2.5), and the Xing/LAME tag in the first
//! one, which stores the encoder's padding.

use std::ops::Range;

use symphonia_core::checksum::Crc16AnsiLe;
use symphonia_core::io::Monitor;

/// Bit rates, in kbit/s, of MPEG 1 and of MPEG 2 and 2.5.
const BIT_RATES: [[u32; 14]; 2] = [
    [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// The header of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Samples per second.
    pub(super) rate: u32,
    pub(super) channels: usize,
    /// Samples per channel.
    pub(super) samples: u64,
    /// Bytes, including the header.
    pub(super) len: usize,
    /// Bytes of the side information; the main data follow it.
    side: Range<usize>,
}

impl Frame {
    /// Parses the header at the start of `bytes`; None if it is not of layer III, or has no bit rate.
    pub(super) fn parse(bytes: &[u8]) -> Option<Frame> {
        let &[0xFF, second, third, fourth, ..] = bytes else {
            return None;
        };
        let half = match second >> 3 & 3 {
            0 => 2, // MPEG 2.5
            2 => 1,
            3 => 0,
            _ => return None,
        };
        if second & 0xE6 != 0xE2 {
            return None;
        }
        let later = usize::from(half > 0);
        let bit_rate = usize::from(third >> 4).checked_sub(1);
        let bit_rate = *BIT_RATES[later].get(bit_rate?)?;
        let rate = [44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? >> half;
        let mono = fourth >> 6 == 3;
        let side = if second & 1 == 0 { 6 } else { 4 }; // after the CRC, if there is one
        let main = match (later == 1, mono) {
            (false, false) => side + 32,
            (true, true) => side + 9,
            _ => side + 17,
        };
        let samples = 1152 >> later;
        Some(Frame {
            rate,
            channels: if mono { 1 } else { 2 },
            samples,
            len: (samples as u32 * 125 * bit_rate / rate) as usize + usize::from(third >> 1 & 1),
            side: side..main,
        })
    }

    /// Returns true if `other` can be a frame of the same stream.
    pub(super) fn is_like(&self, other: &Frame) -> bool {
        (self.rate, self.channels) == (other.rate, other.channels)
    }

    /// Returns how many bytes of earlier frames' main data (the bit reservoir) the frame in `bytes` uses.
    pub(super) fn reservoir(&self, bytes: &[u8]) -> usize {
        match bytes.get(self.side.clone()) {
            Some([high, low, ..]) if self.is_first() => {
                usize::from(*high) << 1 | usize::from(low >> 7)
            }
            Some([all, ..]) => usize::from(*all),
            _ => 0,
        }
    }

    /// Returns the maximum of bytes of earlier frames that a frame can use.
    pub(super) fn most_reservoir(&self) -> usize {
        if self.is_first() { 511 } else { 255 }
    }

    /// Returns a silent copy of the frame in `bytes`, which keeps its main data and `kept` earlier bytes in the
    /// reservoir for the next frame.
    pub(super) fn muted(&self, bytes: &[u8], kept: usize) -> Vec<u8> {
        let mut muted = bytes.to_vec();
        if let Some(side) = muted.get_mut(self.side.clone()) {
            side.fill(0);
            let kept = if self.is_first() {
                kept << 7
            } else {
                kept << 8
            };
            side[..2].copy_from_slice(&(kept as u16).to_be_bytes());
        }
        muted
    }

    /// Returns true for MPEG 1.
    fn is_first(&self) -> bool {
        self.samples == 1152
    }

    /// Returns the bytes of its main data.
    pub(super) fn main(&self) -> usize {
        self.len.saturating_sub(self.side.end)
    }

    /// Returns the samples that mpg123 expects in a stream of `bytes` bytes, from the size of this frame.
    #[allow(clippy::cast_sign_loss)] // all are positive
    pub(super) fn estimate(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.len as f64 * self.samples as f64) as u64
    }
}

/// The fields of the Xing/LAME tag, which occupies a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Frames after the tag's.
    pub(super) frames: u64,
    /// Samples of padding at the start and at the end; 0 for a Xing tag without LAME's fields.
    pub(super) padding: (u64, u64),
    /// Checksum of all frames; None if the encoder wrote none.
    pub(super) checksum: Option<u16>,
}

impl Tag {
    /// Returns true if the first frame, in `bytes`, is a tag.
    pub(super) fn is_in(frame: &Frame, bytes: &[u8]) -> bool {
        let start = Tag::start(frame);
        let name = bytes.get(start..start + 4);
        matches!(name, Some(b"Xing" | b"Info"))
    }

    /// Returns the offset of a tag, which is the same for frames with a CRC.
    fn start(frame: &Frame) -> usize {
        4 + frame.side.len()
    }

    /// Parses the tag in the first frame; None if it is damaged or lacks the number of frames.
    pub(super) fn parse(frame: &Frame, bytes: &[u8]) -> Option<Tag> {
        let start = Tag::start(frame);
        let tag = bytes.get(start..frame.len)?;
        let flags = u32::from_be_bytes(*tag.get(4..8)?.first_chunk()?);
        let is_silent = bytes.get(6..start)?.iter().all(|&byte| byte == 0);
        if flags & 1 == 0 || flags > 15 || !is_silent {
            return None;
        }
        let frames = u32::from_be_bytes(*tag.get(8..12)?.first_chunk()?);
        let at = 12
            + 4 * usize::from(flags & 2 != 0)
            + 100 * usize::from(flags & 4 != 0)
            + 4 * usize::from(flags & 8 != 0);
        let lame: &[u8; 36] = tag.get(at..)?.first_chunk()?;
        let padding = u64::from(u32::from_be_bytes([0, lame[21], lame[22], lame[23]]));
        let written = |at: usize| {
            let checksum = u16::from_be_bytes([lame[at], lame[at + 1]]);
            (lame[0] != 0 && checksum != 0).then_some(checksum)
        };
        let mut crc = Crc16AnsiLe::new(0);
        crc.process_buf_bytes(&bytes[..start + at + 34]);
        let is_intact = written(34).is_none_or(|checksum| checksum == crc.crc());
        is_intact.then_some(Tag {
            frames: u64::from(frames),
            padding: (padding >> 12, padding & 0xFFF),
            checksum: written(32),
        })
    }
}
