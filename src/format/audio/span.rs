//! Which frames of a recording are a sample.

use std::ops::Range;

/// A stretch of a recording; it ends where the recording ends.
#[derive(Clone, Copy, Debug, Default)]
pub enum Span {
    /// All of it.
    #[default]
    All,
    /// By frames.
    Frames {
        /// The first; negative ones count from the end.
        start: i64,
        /// How many; None: all that follow.
        count: Option<u64>,
    },
    /// By time: frames are counted as librosa counts them, `int(seconds * rate)`.
    Seconds {
        /// Where it begins.
        offset: f64,
        /// How long it is; None: to the end.
        duration: Option<f64>,
    },
}

impl Span {
    /// The frames of a recording of `frames` frames, `rate` of them a second.
    #[allow(clippy::cast_sign_loss)] // negative times are 0
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
