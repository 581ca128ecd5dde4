//! Writes decoded blocks of a recording, channel by channel.

use std::ops::Range;

use super::Output;
use super::depth::{Depth, Element, Real};
use crate::error::{Error, Result};

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
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: the output is of integers.
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
        let count = T::of_count(self.channels as u16);
        let out = self.out[to * T::SIZE..].chunks_exact_mut(T::SIZE);
        for (out, frame) in out.zip(wanted) {
            let values =
                (0..self.channels).filter_map(|channel| plane(channel)?.get(frame).copied());
            let sum = values.map(convert).reduce(T::add);
            sum.map_or(T::of_count(0), |sum| sum / count).store(out);
        }
    }
}
