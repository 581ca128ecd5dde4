//! The latest steps of a training: when each asked for its batch, got it, and was done with it.
//!
//! One thread takes batches and writes; others read, without a lock. That thread comes from milliseconds of other
//! work and finds the processor's caches cold, so it touches two lines here. Times are counted from the origin.
//! Invariant: a step is complete before `count` counts it; one that is overwritten while it is read is the oldest.

use std::time::Instant;

use crate::sync::atomic::{AtomicU64, Ordering};

/// No time.
const NONE: u64 = u64::MAX;

/// A step that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When its batch was asked for, in nanoseconds since the origin.
    pub asked_ns: u64,
    /// When it got the batch.
    pub returned_ns: u64,
    /// When the next batch was asked for.
    pub end_ns: u64,
    /// What was noted of its batch.
    pub rows: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Steps {
    origin: Instant,
    /// Of each step its four numbers, in the order of `Step`.
    latest: Box<[[AtomicU64; 4]]>,
    count: AtomicU64,
    asked_ns: AtomicU64,
    returned_ns: AtomicU64,
    rows: AtomicU64,
}

impl Steps {
    /// Makes room for the latest `capacity` steps, one at least. The origin is now.
    pub fn new(capacity: usize) -> Steps {
        // not zeros: pages that are written now do not look like a leak later
        let empty = || [NONE; 4].map(AtomicU64::new);
        Steps {
            origin: Instant::now(),
            latest: std::iter::repeat_with(empty)
                .take(capacity.max(1))
                .collect(),
            count: AtomicU64::new(0),
            asked_ns: AtomicU64::new(NONE),
            returned_ns: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }

    /// Returns the nanoseconds since the origin.
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Notes that a batch is asked for, which ends the step before. Returns the number of steps that have ended.
    pub fn ask(&self) -> u64 {
        let now_ns = self.now_ns();
        let mut count = self.count();
        if let Some((asked_ns, returned_ns)) = self.begun() {
            let step = &self.latest[(count % self.latest.len() as u64) as usize];
            let rows = self.rows.load(Ordering::Relaxed);
            for (place, value) in step.iter().zip([asked_ns, returned_ns, now_ns, rows]) {
                place.store(value, Ordering::Relaxed);
            }
            count += 1;
            self.count.store(count, Ordering::Release);
        }
        self.asked_ns.store(now_ns, Ordering::Release);
        count
    }

    /// Notes that the batch is returned.
    pub fn give(&self) {
        self.returned_ns.store(self.now_ns(), Ordering::Release);
    }

    /// Notes what is known of the batches from now on.
    pub fn set_rows(&self, rows: u64) {
        self.rows.store(rows, Ordering::Relaxed);
    }

    /// Drops the step that was begun: its batch will not come, or its end is not known.
    pub fn forget(&self) {
        self.asked_ns.store(NONE, Ordering::Release);
    }

    /// The number of steps that have ended.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// When the last batch was asked for; None if it has not come and will not.
    pub fn asked_ns(&self) -> Option<u64> {
        let asked_ns = self.asked_ns.load(Ordering::Acquire);
        (asked_ns != NONE).then_some(asked_ns)
    }

    /// When the last batch was returned.
    pub fn returned_ns(&self) -> u64 {
        self.returned_ns.load(Ordering::Acquire)
    }

    /// True while the training works on a batch.
    pub fn in_step(&self) -> bool {
        self.begun().is_some()
    }

    /// When the batch that the training works on was asked for and returned.
    fn begun(&self) -> Option<(u64, u64)> {
        let (asked_ns, returned_ns) = (self.asked_ns()?, self.returned_ns());
        (returned_ns >= asked_ns).then_some((asked_ns, returned_ns))
    }

    /// Returns the number of the first step from number `since` on that is kept, and those from it on.
    ///
    /// The oldest sixteenth is left out: it may be overwritten meanwhile.
    pub fn since(&self, since: u64) -> (u64, Vec<Step>) {
        let (count, capacity) = (self.count(), self.latest.len() as u64);
        let kept = capacity - capacity / 16;
        let first = since.clamp(count.saturating_sub(kept), count);
        let steps = (first..count).map(|number| {
            let step = &self.latest[(number % capacity) as usize];
            let [asked_ns, returned_ns, end_ns, rows] =
                std::array::from_fn(|at| step[at].load(Ordering::Relaxed));
            Step {
                asked_ns,
                returned_ns,
                end_ns,
                rows,
            }
        });
        (first, steps.collect())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn take(steps: &Steps, rows: u64) {
        steps.ask();
        steps.give();
        steps.set_rows(rows);
    }

    #[test]
    fn a_step_ends_when_the_next_batch_is_asked_for() {
        let steps = Steps::new(8);
        assert_eq!((steps.asked_ns(), steps.in_step()), (None, false));
        assert_eq!(steps.ask(), 0);
        assert!(steps.asked_ns().is_some() && !steps.in_step());
        steps.give();
        steps.set_rows(3);
        assert!(steps.in_step());
        assert_eq!((steps.count(), steps.ask()), (0, 1));
        let (first, ended) = steps.since(0);
        assert_eq!((first, ended.len(), ended[0].rows), (0, 1, 3));
        assert!(ended[0].asked_ns <= ended[0].returned_ns);
        assert!(ended[0].returned_ns <= ended[0].end_ns);
        assert_eq!(steps.asked_ns(), Some(ended[0].end_ns));
    }

    #[test]
    fn a_step_that_is_forgotten_is_not_counted() {
        let steps = Steps::new(8);
        take(&steps, 1);
        steps.forget();
        assert!(!steps.in_step());
        assert_eq!(steps.ask(), 0);
        assert_eq!(steps.ask(), 0, "a batch that did not come is no step");
        steps.give();
        assert_eq!(steps.ask(), 1);
    }

    #[test]
    fn the_latest_steps_are_kept() {
        let steps = Steps::new(32);
        for number in 0..100 {
            take(&steps, number);
        }
        let rows = |since| {
            let (first, steps) = steps.since(since);
            (
                first,
                steps.iter().map(|step| step.rows).collect::<Vec<_>>(),
            )
        };
        assert_eq!(rows(0), (69, (69..99).collect())); // the last one has not ended
        assert_eq!(rows(97), (97, vec![97, 98]));
        assert_eq!(rows(99), (99, vec![]));
        assert_eq!(rows(1000), (99, vec![]));
    }
}
