//! The latest spans of time that threads and workers spent on batches, for a trace.
//!
//! Owns a ring of bounded size; reads no clock but that of its origin. A stream adds the spans of a claim at the
//! claim's end, while it holds its own lock, so threads of one stream never wait for the ring's. Times are
//! counted from the origin of the ring. Invariant: spans of one thread come in order and do not overlap.

use std::collections::VecDeque;
use std::time::Instant;

use crate::pool;
use crate::sync::{Arc, Mutex, lock};

/// A stage in the making of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Makes room for the batch.
    Begin,
    /// Reads encoded bytes.
    Read,
    /// Decodes them.
    Decode,
    /// Transforms samples, and copies rows into the batch.
    Transform,
    /// Collates samples into a batch.
    Collate,
    /// Makes the whole batch, as a worker in Python does.
    Make,
}

impl Stage {
    /// The names of the stages, in their order.
    pub const NAMES: [&str; 6] = ["begin", "read", "decode", "transform", "collate", "make"];
}

/// A span of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began, in nanoseconds since the origin.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Number of the batch in its epoch.
    pub batch: u64,
    /// Number of the epoch, as the stream was given it.
    pub epoch: u32,
    /// Its thread.
    pub thread: pool::Thread,
    /// The work that the thread did.
    pub stage: Stage,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Spans {
    origin: Instant,
    capacity: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    latest: VecDeque<Span>,
    /// Number of spans so far, those included that were dropped.
    count: u64,
}

impl Spans {
    /// Makes a ring of the latest `capacity` spans, one at least, whose origin is now.
    pub fn new(capacity: usize) -> Spans {
        let capacity = capacity.max(1);
        Spans {
            origin: Instant::now(),
            capacity,
            ring: Mutex::new(Ring {
                latest: VecDeque::with_capacity(capacity), // no thread allocates later
                count: 0,
            }),
        }
    }

    /// Returns the time of a moment; 0 if that is before the origin.
    pub fn ns(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.origin).as_nanos() as u64
    }

    /// Adds a span; drops the oldest one if there are too many.
    pub fn add(&self, span: Span) {
        let mut ring = lock(&self.ring);
        if ring.latest.len() == self.capacity {
            ring.latest.pop_front();
        }
        ring.latest.push_back(span);
        ring.count += 1;
    }

    /// Returns the spans from number `first` on that are kept, oldest first, and the number of the next one.
    pub fn since(&self, first: u64) -> (Vec<Span>, u64) {
        let ring = lock(&self.ring);
        let dropped = ring.count - ring.latest.len() as u64;
        let skipped = first.saturating_sub(dropped).min(ring.latest.len() as u64);
        let spans = ring.latest.range(skipped as usize..).copied().collect();
        (spans, ring.count)
    }
}

/// Records the spans of one stream.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The ring that they are written to.
    pub spans: Arc<Spans>,
    /// The number of its epoch.
    pub epoch: u32,
}

impl Recording {
    /// Records a span of this thread, unless it is empty.
    pub fn add(&self, batch: u64, stage: Stage, begin: Instant, end: Instant) {
        if begin < end {
            self.spans.add(Span {
                begin_ns: self.spans.ns(begin),
                end_ns: self.spans.ns(end),
                batch,
                epoch: self.epoch,
                thread: pool::current(),
                stage,
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn recording(capacity: usize) -> Recording {
        let spans = Arc::new(Spans::new(capacity));
        Recording { spans, epoch: 7 }
    }

    #[test]
    fn a_span_says_what_was_done_when() {
        let recording = recording(4);
        let begin = recording.spans.origin + Duration::from_nanos(10);
        let end = begin + Duration::from_secs(5);
        recording.add(3, Stage::Decode, begin, end);
        recording.add(3, Stage::Transform, end, end); // empty
        let (spans, count) = recording.spans.since(0);
        assert_eq!(count, 1);
        let expected = Span {
            begin_ns: 10,
            end_ns: 5_000_000_010,
            batch: 3,
            epoch: 7,
            thread: pool::Thread::default(),
            stage: Stage::Decode,
        };
        assert_eq!(spans, [expected]);
        assert_eq!(Stage::NAMES[Stage::Collate as usize], "collate");
    }

    #[test]
    fn the_latest_spans_are_kept_and_read_once() {
        let recording = recording(3);
        let mut next = 0;
        for (added, expected) in [
            (2, vec![0, 1]),
            (0, vec![]),
            (2, vec![2, 3]),
            (5, vec![6, 7, 8]),
        ] {
            for _ in 0..added {
                let begin = recording.spans.origin;
                let batch = recording.spans.since(0).1;
                recording.add(batch, Stage::Read, begin, begin + Duration::from_nanos(1));
            }
            let (spans, count) = recording.spans.since(next);
            let batches: Vec<u64> = spans.iter().map(|span| span.batch).collect();
            assert_eq!(batches, expected);
            next = count;
        }
        assert_eq!(recording.spans.since(next + 100), (vec![], 9));
    }
}
