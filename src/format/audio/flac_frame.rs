//! Frames of FLAC (RFC 9639, section 9): parses headers and finds ends.
//!
//! A frame does not store its length. It ends where its CRC-16 is correct and the next frame's header begins,
//! with a correct CRC-8 and the next number.

use std::ops::Range;

use symphonia_core::checksum::{Crc8Ccitt, Crc16Ansi};
use symphonia_core::io::Monitor;

use crate::error::{Error, Result};

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Samples per channel.
    pub(super) samples: u64,
    /// Samples per second; None for that of STREAMINFO.
    pub(super) rate: Option<u32>,
    pub(super) channels: usize,
    /// Bits per sample; None for that of STREAMINFO.
    pub(super) bits: Option<u32>,
    /// Number of the frame, or of its first sample.
    number: u64,
    /// True if `number` counts samples, not frames.
    by_sample: bool,
    /// Bytes of the header.
    len: usize,
}

impl Frame {
    /// Parses the header at the start of `bytes`; None if there is none or it is damaged.
    pub(super) fn parse(bytes: &[u8]) -> Option<Frame> {
        let &[0xFF, second, sizes, kind, ..] = bytes else {
            return None;
        };
        if second & 0xFE != 0xF8 || kind & 1 != 0 {
            return None;
        }
        let mut rest = &bytes[4..];
        let mut take = |count: usize| {
            let (taken, after) = rest.split_at_checked(count)?;
            rest = after;
            Some(
                taken
                    .iter()
                    .fold(0, |all, &byte| all << 8 | u64::from(byte)),
            )
        };
        let first = take(1)?;
        let number = match (first as u8).leading_ones() {
            0 => first,
            ones @ 2..=7 => {
                let mut number = first & (0x7F >> ones);
                for _ in 1..ones {
                    number = number << 6 | (take(1)? & 0x3F);
                }
                number
            }
            _ => return None,
        };
        let samples = match sizes >> 4 {
            0 => return None,
            1 => 192,
            few @ 2..=5 => 144 << few,
            6 => take(1)? + 1,
            7 => take(2)? + 1,
            many => 1 << many,
        };
        let rate = match sizes & 15 {
            0 => None,
            12 => Some(take(1)? * 1000),
            13 => Some(take(2)?),
            14 => Some(take(2)? * 10),
            15 => return None,
            known => Some(
                [
                    88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100,
                    48_000, 96_000,
                ][usize::from(known) - 1],
            ),
        };
        let channels = match kind >> 4 {
            few @ 0..=7 => usize::from(few) + 1,
            8..=10 => 2,
            _ => return None,
        };
        let bits = match kind >> 1 & 7 {
            0 => None,
            3 => return None,
            known => Some([8, 12, 0, 16, 20, 24, 32][usize::from(known) - 1]),
        };
        let checksum = take(1)?;
        let len = bytes.len() - rest.len();
        let mut crc = Crc8Ccitt::new(0);
        crc.process_buf_bytes(&bytes[..len - 1]);
        (u64::from(crc.crc()) == checksum).then_some(Frame {
            samples,
            rate: rate.map(|rate| rate as u32),
            channels,
            bits,
            number,
            by_sample: second & 1 == 1,
            len,
        })
    }

    /// Returns true if `next` can be the header of the frame after this one.
    fn precedes(&self, next: &Frame) -> bool {
        let step = if self.by_sample { self.samples } else { 1 };
        next.by_sample == self.by_sample && next.number == self.number + step
    }
}

/// The frames of a stream, one after the other.
pub(super) struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    next: Option<Frame>,
    count: usize,
}

impl<'a> Frames<'a> {
    /// Returns an iterator over the frames of a stream, the first at the start of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Frames<'a> {
        let first = Frame::parse(bytes).filter(|frame| frame.number == 0);
        Frames {
            bytes,
            at: 0,
            next: first,
            count: 0,
        }
    }

    /// Returns the next frame and its bytes; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Frame, &'a [u8])>> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let damaged = || Error::decode(format!("frame {} of its sound is damaged", self.count));
        let frame = self.next.ok_or_else(damaged)?;
        let (range, next) = self.end(&frame).ok_or_else(damaged)?;
        self.at = range.end;
        self.next = next;
        self.count += 1;
        Ok(Some((frame, &self.bytes[range])))
    }

    /// Returns the range of the frame at `at`, and the header of the next one.
    fn end(&self, frame: &Frame) -> Option<(Range<usize>, Option<Frame>)> {
        let (start, sync) = (self.at, self.bytes[self.at + 1]);
        let mut crc = Crc16Ansi::new(0);
        let mut done = start;
        let mut from = start + frame.len;
        loop {
            let place = self
                .bytes
                .get(from..)?
                .iter()
                .position(|&byte| byte == 0xFF);
            let end = place.map_or(self.bytes.len(), |place| from + place);
            let next = match place {
                Some(_) if self.bytes.get(end + 1) != Some(&sync) => None,
                Some(_) => Frame::parse(&self.bytes[end..]).filter(|next| frame.precedes(next)),
                None => None,
            };
            if next.is_some() || place.is_none() {
                crc.process_buf_bytes(&self.bytes[done..end]);
                done = end;
                if crc.crc() == 0 {
                    return Some((start..end, next));
                }
            }
            place?;
            from = end + 1;
        }
    }
}
