//! What a sample costs, as far as it is known, and what follows from it.

use std::time::Duration;

/// A chunk is sized to cost about this much, in nanoseconds: far above what a claim costs, far
/// below what a consumer would notice.
const CHUNK_NS: f64 = 100_000.0;

/// A batch that costs less than this, in nanoseconds, is made by the consumer if it has to wait for it,
/// and no thread is woken for one while half of what may be in flight is ready: the thread that is
/// woken later makes several. Waking one costs some microseconds, and so does being woken by it.
const CHEAP_NS: f64 = 50_000.0;

/// No thread is woken while all that nobody has begun costs less than this, in nanoseconds.
const TINY_NS: f64 = 5_000.0;

/// For how long a consumer looks for a cheap batch that somebody makes before it sleeps: about as long as being
/// woken takes. The model checker knows no time.
pub(super) const LOOK: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 30 });

/// Weight of the newest measurement.
const WEIGHT: f64 = 0.1;

/// Whether a batch of so many samples, of which one costs `sample_ns` nanoseconds, is sooner made than waited for.
pub fn is_cheap(sample_ns: f64, samples: usize) -> bool {
    sample_ns * (samples as f64) < CHEAP_NS
}

/// A running estimate of what a sample costs, in nanoseconds.
#[derive(Debug)]
pub(super) struct Cost(f64);

impl Cost {
    /// Begins with a guess.
    pub(super) fn of(sample_ns: f64) -> Cost {
        Cost(sample_ns)
    }

    /// Learns what computing samples, one at least, cost.
    pub(super) fn observe(&mut self, samples: usize, elapsed_ns: f64) {
        self.0 += WEIGHT * (elapsed_ns / samples as f64 - self.0);
    }

    /// Samples per claim.
    #[allow(clippy::cast_sign_loss)] // neither is negative
    pub(super) fn chunk(&self, most: usize) -> usize {
        let affordable = (CHUNK_NS / self.0.max(1.0)) as usize;
        affordable.clamp(1, most.max(1))
    }

    /// Whether a batch of so many samples is sooner made than waited for.
    pub(super) fn is_cheap(&self, samples: usize) -> bool {
        is_cheap(self.0, samples)
    }

    /// Whether no thread should be woken for so many samples.
    pub(super) fn is_tiny(&self, samples: usize) -> bool {
        self.0 * (samples as f64) < TINY_NS
    }
}
