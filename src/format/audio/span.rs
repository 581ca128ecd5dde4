//! The span of frames of a recording that is its sample.

use std::ops::Range;

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
    pub(super) fn of(self, frames: u64, rate: u32) -> Range<u64> {
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
