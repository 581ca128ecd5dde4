//! Converts the interleaved frames of WAV files to channels.
//!
//! Each pair of encoding and element type has a loop of its own without branches, so that the compiler vectorises
//! those of one and two channels.

use super::Output;
use super::planes::{Depth, Element, Real};
use crate::error::{Error, Result};

/// The little-endian encoding of a value in a WAV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub(super) enum Encoding {
    U8,
    S16,
    S24,
    S32,
    F32,
    F64,
}

impl Encoding {
    /// Returns the bytes per value.
    pub(super) fn bytes(self) -> usize {
        match self {
            Encoding::U8 => 1,
            Encoding::S16 => 2,
            Encoding::S24 => 3,
            Encoding::S32 | Encoding::F32 => 4,
            Encoding::F64 => 8,
        }
    }

    /// Returns true for floats.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Encoding::F32 | Encoding::F64)
    }
}

/// Writes frames of `channels` values each to `out`, which has exactly that size.
pub(super) fn write(
    encoding: Encoding,
    bytes: &[u8],
    channels: usize,
    output: Output,
    out: &mut [u8],
) -> Result<()> {
    let mut job = Job {
        bytes,
        channels,
        mono: output.mono,
        out,
    };
    let depth = output.depth;
    match (encoding, depth) {
        (Encoding::U8, _) => job.ints(depth, |[low]: [u8; 1]| (i32::from(low) - 128) << 24),
        (Encoding::S16, _) => {
            job.ints(depth, |[low, high]: [u8; 2]| {
                i32::from_le_bytes([0, 0, low, high])
            });
        }
        (Encoding::S24, _) => {
            job.ints(depth, |[low, mid, high]: [u8; 3]| {
                i32::from_le_bytes([0, low, mid, high])
            });
        }
        (Encoding::S32, _) => job.ints(depth, i32::from_le_bytes),
        (Encoding::F32, Depth::F32) => job.reals(f32::from_le_bytes),
        (Encoding::F32, Depth::F64) => job.reals(|four| f64::from(f32::from_le_bytes(four))),
        (Encoding::F64, Depth::F32) => job.reals(|eight| f64::from_le_bytes(eight) as f32),
        (Encoding::F64, Depth::F64) => job.reals(f64::from_le_bytes),
        (Encoding::F32 | Encoding::F64, Depth::I16 | Depth::I32) => {
            return Err(Error::decode("its samples are not integers"));
        }
    }
    Ok(())
}

struct Job<'a> {
    bytes: &'a [u8],
    channels: usize,
    mono: bool,
    out: &'a mut [u8],
}

impl Job<'_> {
    fn ints<const N: usize>(&mut self, depth: Depth, read: impl Fn([u8; N]) -> i32 + Copy) {
        match depth {
            Depth::F32 => self.reals(move |bytes| f32::of_int(read(bytes))),
            Depth::F64 => self.reals(move |bytes| f64::of_int(read(bytes))),
            Depth::I16 => self.spread(move |bytes| i16::of_int(read(bytes))),
            Depth::I32 => self.spread(move |bytes| i32::of_int(read(bytes))),
        }
    }

    fn reals<const N: usize, T: Real>(&mut self, read: impl Fn([u8; N]) -> T + Copy) {
        if self.mono && self.channels > 1 {
            self.fold(read);
        } else {
            self.spread(read);
        }
    }

    /// Writes the channels one after the other.
    fn spread<const N: usize, T: Element>(&mut self, read: impl Fn([u8; N]) -> T + Copy) {
        let (numbers, _) = self.bytes.as_chunks::<N>();
        let frames = numbers.len() / self.channels;
        let plane = (frames * T::SIZE).max(1);
        let mut planes = self.out.chunks_exact_mut(plane);
        if self.channels == 1 {
            for (out, number) in self.out.chunks_exact_mut(T::SIZE).zip(numbers) {
                read(*number).store(out);
            }
        } else if let (2, Some(left), Some(right)) = (self.channels, planes.next(), planes.next()) {
            let planes = left
                .chunks_exact_mut(T::SIZE)
                .zip(right.chunks_exact_mut(T::SIZE));
            for ((left, right), [a, b]) in planes.zip(numbers.as_chunks::<2>().0) {
                read(*a).store(left);
                read(*b).store(right);
            }
        } else {
            for (channel, plane) in self.out.chunks_exact_mut(plane).enumerate() {
                let numbers = numbers[channel..].iter().step_by(self.channels);
                for (out, number) in plane.chunks_exact_mut(T::SIZE).zip(numbers) {
                    read(*number).store(out);
                }
            }
        }
    }

    /// Writes the mean of the channels: their sum in order, divided by their number.
    fn fold<const N: usize, T: Real>(&mut self, read: impl Fn([u8; N]) -> T + Copy) {
        let (numbers, _) = self.bytes.as_chunks::<N>();
        let count = T::from(self.channels as u16);
        let frames = numbers.chunks_exact(self.channels);
        for (out, frame) in self.out.chunks_exact_mut(T::SIZE).zip(frames) {
            let sum = frame.iter().map(|number| read(*number)).reduce(T::add);
            sum.map_or(T::from(0), |sum| sum / count).store(out);
        }
    }
}
