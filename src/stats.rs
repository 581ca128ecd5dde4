//! The counters of a stream.
//!
//! Owns the counters; decides nothing. The stream's lock, which every turn takes anyway, protects them, so
//! counting costs an addition and no shared cache line of its own.

use std::time::{Duration, Instant};

use crate::quantiles::Quantiles;

/// Number of the consumer's latest steps whose median is kept.
const STEPS: usize = 64;

/// Times and bytes of one turn, by stage. Work adds to it while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stages {
    /// Reading encoded bytes.
    pub read: Duration,
    /// Decoding them.
    pub decode: Duration,
    /// Transforming samples, and copying rows into the batch.
    pub transform: Duration,
    /// Collating samples into a batch.
    pub collate: Duration,
    /// Encoded bytes read.
    pub read_bytes: u64,
}

impl Stages {
    /// Adds those of another turn.
    pub fn add(&mut self, other: &Stages) {
        self.read += other.read;
        self.decode += other.decode;
        self.transform += other.transform;
        self.collate += other.collate;
        self.read_bytes += other.read_bytes;
    }
}

/// The counters of a stream.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Stages of all finished turns; durations of concurrent threads add up.
    pub stages: Stages,
    /// Time that the consumer spent waiting for a batch.
    pub wait: Duration,
    /// Time that it spent making batches itself.
    pub made_here: Duration,
    /// Time from each hand-over to the next call.
    pub stepped: Duration,
    /// Time from each of these calls to its hand-over.
    pub called: Duration,
    /// Batches handed over.
    pub batches: u64,
    /// Samples of these.
    pub taken: u64,
    /// Samples finished, failed ones included.
    pub samples: u64,
    /// Thread-time at work, over all threads.
    pub busy: Duration,
    /// Thread-time permitted but not used: there was nothing to do.
    pub idle: Duration,
    /// Time to make a batch, from the first claim to the last sample.
    pub making: Quantiles,
    /// Time to compute a sample: the average over a claim.
    pub computing: Quantiles,
    /// Time that the consumer waits for a batch, including batches that it makes itself.
    pub waiting: Quantiles,
    /// The consumer's window, since [`Marks::restart`].
    pub marks: Marks,
    active: usize,
    permitted: usize,
    since: Option<Instant>,
}

/// The consumer's behaviour since [`Marks::restart`].
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// When a batch was handed over; None while the consumer waits for one.
    returned: Option<Instant>,
    /// When the consumer called for the next one; None while it does something else.
    called: Option<Instant>,
    /// The latest times from a hand-over to the next call.
    steps: Vec<Duration>,
    /// Number of calls.
    calls: usize,
    /// Minimum and maximum of the batches that a call found ready, once there was one.
    ready: Option<(usize, usize)>,
}

impl Marks {
    /// Records a call of the consumer that found `ready` batches; only the first until one is handed over.
    /// Returns the time since the last hand-over.
    fn called(&mut self, ready: usize) -> Option<Duration> {
        let returned = self.returned.take()?;
        let now = Instant::now();
        self.called = Some(now);
        let step = now - returned;
        if self.steps.len() < STEPS {
            self.steps.push(step);
        } else {
            self.steps[self.calls % STEPS] = step;
        }
        self.calls += 1;
        let (least, most) = self.ready.unwrap_or((ready, ready));
        self.ready = Some((least.min(ready), most.max(ready)));
        Some(step)
    }

    /// Notes that a batch is handed over; returns how long it was waited for, unless it is the first.
    fn returned(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.returned = Some(now);
        self.called.take().map(|called| now - called)
    }

    /// Returns the median time from a hand-over to the next call.
    pub fn step(&self) -> Duration {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().unwrap_or_default()
    }

    /// Returns the fewest batches that a call found ready, and the most.
    pub fn ready(&self) -> (usize, usize) {
        self.ready.unwrap_or_default()
    }

    /// Forgets all but whether the consumer is computing.
    pub fn restart(&mut self) {
        *self = Marks {
            returned: self.returned,
            called: self.called,
            ..Marks::default()
        };
    }
}

impl Stats {
    /// Starts counting now, with this many threads permitted.
    pub fn new(permitted: usize) -> Stats {
        Stats {
            permitted,
            since: Some(Instant::now()),
            ..Stats::default()
        }
    }

    /// Notes that a batch of this many samples is handed over.
    pub fn took(&mut self, samples: usize) {
        self.batches += 1;
        self.taken += samples as u64;
        if let Some(wait) = self.marks.returned() {
            self.called += wait;
            self.waiting.add(wait, 1);
        }
    }

    /// Notes that the consumer came for a batch and found this many.
    pub fn came(&mut self, ready: usize) {
        self.stepped += self.marks.called(ready).unwrap_or_default();
    }

    /// Notes how many threads are at work and permitted from now on.
    pub fn threads(&mut self, active: usize, permitted: usize) {
        let now = Instant::now();
        let elapsed = self.since.map_or(Duration::ZERO, |since| now - since);
        self.busy += elapsed * self.active as u32;
        self.idle += elapsed * self.permitted.saturating_sub(self.active) as u32;
        (self.active, self.permitted, self.since) = (active, permitted, Some(now));
    }
}
