//! The element types of samples, and the writing of decoded blocks of a recording, channel by channel.

use std::ops::{Add, Div, Range};

use super::Output;
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// The element type of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// `float32`; full scale is 1.
    F32,
    /// `float64`; full scale is 1.
    F64,
    /// `int16`; wider integers lose their lower bits.
    I16,
    /// `int32`; full scale is 2**31.
    I32,
}

impl Depth {
    /// Returns the depth for a dtype; None if samples cannot have it.
    pub fn of(dtype: Dtype) -> Option<Depth> {
        match dtype {
            Dtype::Float32 => Some(Depth::F32),
            Dtype::Float64 => Some(Depth::F64),
            Dtype::Int16 => Some(Depth::I16),
            Dtype::Int32 => Some(Depth::I32),
            _ => None,
        }
    }

    /// Returns the dtype.
    pub fn dtype(self) -> Dtype {
        match self {
            Depth::F32 => Dtype::Float32,
            Depth::F64 => Dtype::Float64,
            Depth::I16 => Dtype::Int16,
            Depth::I32 => Dtype::Int32,
        }
    }

    /// Returns true for floats.
    pub fn is_float(self) -> bool {
        matches!(self, Depth::F32 | Depth::F64)
    }
}

/// An element of a sample.
pub(super) trait Element: Copy {
    /// Bytes per element.
    const SIZE: usize;

    /// Converts an integer with a full scale of 2**31 (fewer bits are shifted left).
    fn of_int(value: i32) -> Self;

    /// Writes the element to [`Element::SIZE`] bytes.
    fn store(self, out: &mut [u8]);
}

/// A float element.
pub(super) trait Real:
    Element + Add<Output = Self> + Div<Output = Self> + From<u16>
{
}

impl Real for f32 {}
impl Real for f64 {}

macro_rules! element {
    ($type:ty, $of_int:expr) => {
        impl Element for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn of_int(value: i32) -> Self {
                $of_int(value)
            }

            #[inline(always)]
            fn store(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_ne_bytes());
            }
        }
    };
}

// Integers are rounded to a float before they are scaled, as in libsndfile (pcm.c, `let2f_array`).
element!(f32, |value: i32| value as f32 * (1.0 / 2_147_483_648.0));
element!(f64, |value: i32| f64::from(value) * (1.0 / 2_147_483_648.0));
element!(i16, |value: i32| (value >> 16) as i16);
element!(i32, |value: i32| value);

/// The sample of one recording, written block by block.
///
/// Invariant: of the first `at` frames, those within `range` are written.
pub(super) struct Planes<'a> {
    out: &'a mut [u8],
    output: Output,
    channels: usize,
    range: Range<u64>,
    at: u64,
}

impl<'a> Planes<'a> {
    /// Returns a writer into `out`, which has room for the frames of `range` of all channels.
    pub(super) fn new(
        out: &'a mut [u8],
        output: Output,
        channels: usize,
        range: Range<u64>,
    ) -> Planes<'a> {
        Planes {
            out,
            output,
            channels,
            range,
            at: 0,
        }
    }

    /// Returns the first frame of the span.
    pub(super) fn first(&self) -> u64 {
        self.range.start
    }

    /// Returns true if the span is complete.
    pub(super) fn is_full(&self) -> bool {
        self.at >= self.range.end
    }

    /// Returns true if none of the next `frames` frames is within the span.
    pub(super) fn skips(&self, frames: u64) -> bool {
        self.at + frames <= self.range.start || self.is_full()
    }

    /// Skips `frames` frames, which were not decoded.
    pub(super) fn skip(&mut self, frames: u64) {
        self.at += frames;
    }

    /// Writes a block of integers with a full scale of 2**31.
    pub(super) fn ints<'b>(&mut self, frames: usize, plane: impl Fn(usize) -> Option<&'b [i32]>) {
        match self.output.depth {
            Depth::F32 => self.reals(frames, plane, f32::of_int),
            Depth::F64 => self.reals(frames, plane, f64::of_int),
            Depth::I16 => self.spread(frames, plane, i16::of_int),
            Depth::I32 => self.spread(frames, plane, i32::of_int),
        }
    }

    /// Writes a block of floats with a full scale of 1.
    pub(super) fn floats<'b>(
        &mut self,
        frames: usize,
        plane: impl Fn(usize) -> Option<&'b [f32]>,
    ) -> Result<()> {
        match self.output.depth {
            Depth::F32 => self.reals(frames, plane, |value| value),
            Depth::F64 => self.reals(frames, plane, f64::from),
            Depth::I16 | Depth::I32 => return Err(Error::decode("its samples are not integers")),
        }
        Ok(())
    }

    fn reals<'b, S: Copy + 'b, T: Real>(
        &mut self,
        frames: usize,
        plane: impl Fn(usize) -> Option<&'b [S]>,
        convert: impl Fn(S) -> T + Copy,
    ) {
        if self.output.mono && self.channels > 1 {
            self.fold(frames, plane, convert);
        } else {
            self.spread(frames, plane, convert);
        }
    }

    /// Counts a block; returns the range of its frames within the span, and their offset in the output.
    fn take(&mut self, frames: usize) -> (Range<usize>, usize) {
        let before = self.at;
        self.at += frames as u64;
        let start = before.max(self.range.start);
        let end = self.at.min(self.range.end);
        if start >= end {
            return (0..0, 0);
        }
        let wanted = (start - before) as usize..(end - before) as usize;
        (wanted, (start - self.range.start) as usize)
    }

    fn spread<'b, S: Copy + 'b, T: Element>(
        &mut self,
        frames: usize,
        plane: impl Fn(usize) -> Option<&'b [S]>,
        convert: impl Fn(S) -> T + Copy,
    ) {
        let (wanted, to) = self.take(frames);
        let len = ((self.range.end - self.range.start) as usize * T::SIZE).max(1);
        for (channel, out) in self.out.chunks_exact_mut(len).enumerate() {
            let values = plane(channel).and_then(|values| values.get(wanted.clone()));
            let out = out[to * T::SIZE..].chunks_exact_mut(T::SIZE);
            for (out, value) in out.zip(values.unwrap_or(&[])) {
                convert(*value).store(out);
            }
        }
    }

    /// Writes the mean of the channels, as [`pcm`](super::pcm) does.
    fn fold<'b, S: Copy + 'b, T: Real>(
        &mut self,
        frames: usize,
        plane: impl Fn(usize) -> Option<&'b [S]>,
        convert: impl Fn(S) -> T + Copy,
    ) {
        let (wanted, to) = self.take(frames);
        let count = T::from(self.channels as u16);
        let out = self.out[to * T::SIZE..].chunks_exact_mut(T::SIZE);
        for (out, frame) in out.zip(wanted) {
            let values =
                (0..self.channels).filter_map(|channel| plane(channel)?.get(frame).copied());
            let sum = values.map(convert).reduce(T::add);
            sum.map_or(T::from(0), |sum| sum / count).store(out);
        }
    }
}
