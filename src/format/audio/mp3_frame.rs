//! Frames of MPEG audio layer III (ISO 11172-3 and 13818-3, and MPEG 2.5), and the tag in the first one
//! that says how much of the sound is padding.

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

/// What the header of a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Frames in a second.
    pub(super) rate: u32,
    pub(super) channels: usize,
    /// Numbers of each channel.
    pub(super) samples: u64,
    /// Bytes, with the header.
    pub(super) len: usize,
    /// Where the side information begins, and where the main data do.
    side: Range<usize>,
}

impl Frame {
    /// Reads the header that `bytes` begin with; None: it is none of layer III, or has no bit rate.
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
        let side = if second & 1 == 0 { 6 } else { 4 }; // behind a checksum
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

    /// Whether `other` can be a frame of the same stream.
    pub(super) fn is_like(&self, other: &Frame) -> bool {
        (self.rate, self.channels) == (other.rate, other.channels)
    }

    /// How many bytes of earlier frames' main data the frame that is `bytes` needs.
    pub(super) fn reservoir(&self, bytes: &[u8]) -> usize {
        match bytes.get(self.side.clone()) {
            Some([high, low, ..]) if self.is_first() => {
                usize::from(*high) << 1 | usize::from(low >> 7)
            }
            Some([all, ..]) => usize::from(*all),
            _ => 0,
        }
    }

    /// As many bytes of earlier frames can belong to a frame.
    pub(super) fn most_reservoir(&self) -> usize {
        if self.is_first() { 511 } else { 255 }
    }

    /// The frame that is `bytes`, without a sound of its own, and `kept` bytes of earlier frames kept for
    /// the next one, beside its own.
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

    /// Whether it is of MPEG 1.
    fn is_first(&self) -> bool {
        self.samples == 1152
    }

    /// Bytes of its main data.
    pub(super) fn main(&self) -> usize {
        self.len.saturating_sub(self.side.end)
    }

    /// The length that mpg123 expects of a stream of `bytes` bytes, by its size and that of this frame.
    #[allow(clippy::cast_sign_loss)] // all are positive
    pub(super) fn estimate(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.len as f64 * self.samples as f64) as u64
    }
}

/// What the tag of Xing and LAME says, which has a frame of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Frames behind the tag's.
    pub(super) frames: u64,
    /// Samples that the encoder put before the sound, and behind it; 0 where the tag is only Xing's.
    pub(super) padding: (u64, u64),
    /// The checksum of all frames; None: not written.
    pub(super) checksum: Option<u16>,
}

impl Tag {
    /// Whether the first frame, of which there are `bytes`, is a tag.
    pub(super) fn is_in(frame: &Frame, bytes: &[u8]) -> bool {
        let start = Tag::start(frame);
        let name = bytes.get(start..start + 4);
        matches!(name, Some(b"Xing" | b"Info"))
    }

    /// Where a tag begins: also in a frame with a checksum.
    fn start(frame: &Frame) -> usize {
        4 + frame.side.len()
    }

    /// Reads the tag of the first frame; None: it is damaged, or does not say how many frames follow.
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
