//! Estimates what a sample costs, and decides from it how batches are divided and who makes them.

use std::time::Duration;

/// Target cost of a chunk, in nanoseconds: far above the cost of a claim, far below what a consumer would
/// notice.
const CHUNK_NS: f64 = 100_000.0;

/// A batch that costs less than this, in nanoseconds, is made by the consumer that would otherwise wait for
/// it. No thread is woken for such a batch while half of the depth is ready: a thread woken later makes
/// several. Waking a thread costs some microseconds, and so does being woken.
const CHEAP_NS: f64 = 50_000.0;

/// No thread is woken while all batches not yet begun together cost less than this, in nanoseconds.
const TINY_NS: f64 = 5_000.0;

/// Time for which a consumer spins for a cheap batch that a thread is making before it sleeps: about as long as a
/// wake-up takes. Zero under loom, which has no clock.
pub(super) const SPIN: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 30 });

/// Weight of the newest measurement.
const WEIGHT: f64 = 0.1;

/// Returns true if making a batch of `samples` samples, each of `sample_ns` nanoseconds, is faster than
/// waiting for it.
pub fn is_cheap(sample_ns: f64, samples: usize) -> bool {
    sample_ns * (samples as f64) < CHEAP_NS
}

/// A running estimate of what a sample costs, in nanoseconds.
#[derive(Debug)]
pub(super) struct Cost(f64);

impl Cost {
    pub(super) fn of(sample_ns: f64) -> Cost {
        Cost(sample_ns)
    }

    /// Updates the estimate with the time that `samples` samples took; `samples` is at least 1.
    pub(super) fn observe(&mut self, samples: usize, elapsed_ns: f64) {
        self.0 += WEIGHT * (elapsed_ns / samples as f64 - self.0);
    }

    /// Returns the number of samples per claim.
    #[allow(clippy::cast_sign_loss)] // neither is negative
    pub(super) fn chunk(&self, most: usize) -> usize {
        let affordable = (CHUNK_NS / self.0.max(1.0)) as usize;
        affordable.clamp(1, most.max(1))
    }

    /// Returns true if making a batch of `samples` samples is faster than waiting for it.
    pub(super) fn is_cheap(&self, samples: usize) -> bool {
        is_cheap(self.0, samples)
    }

    /// Returns true if so few samples are not worth waking a thread for.
    pub(super) fn is_tiny(&self, samples: usize) -> bool {
        self.0 * (samples as f64) < TINY_NS
    }
}
