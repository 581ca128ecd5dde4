//! What a stream did so far, in plain numbers.
//!
//! Owns the counters; decides nothing. They are kept under the stream's lock, which every turn takes
//! anyway, so that counting costs an addition and no shared cache line of its own.

use std::time::{Duration, Instant};

/// Times and bytes of one turn, by stage. Work adds to it while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stages {
    /// Reading encoded bytes.
    pub read: Duration,
    /// Decoding them.
    pub decode: Duration,
    /// Transforming samples, and copying rows into the batch.
    pub transform: Duration,
    /// Joining samples into a batch.
    pub collate: Duration,
    /// Encoded bytes read.
    pub read_bytes: u64,
}

impl Stages {
    fn add(&mut self, other: &Stages) {
        self.read += other.read;
        self.decode += other.decode;
        self.transform += other.transform;
        self.collate += other.collate;
        self.read_bytes += other.read_bytes;
    }
}

/// The counters of a stream.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Stages of all turns that are over; durations of concurrent threads add up.
    pub stages: Stages,
    /// Time that the consumer spent waiting for a batch.
    pub wait: Duration,
    /// Batches handed over.
    pub batches: u64,
    /// Samples finished, failed ones included.
    pub samples: u64,
    /// Thread-time at work, over all threads.
    pub busy: Duration,
    /// Thread-time permitted but not used: there was nothing to do.
    pub idle: Duration,
    active: usize,
    permitted: usize,
    since: Instant,
}

impl Stats {
    /// Starts counting now, with this many threads permitted.
    pub fn new(permitted: usize) -> Stats {
        Stats {
            stages: Stages::default(),
            wait: Duration::ZERO,
            batches: 0,
            samples: 0,
            busy: Duration::ZERO,
            idle: Duration::ZERO,
            active: 0,
            permitted,
            since: Instant::now(),
        }
    }

    /// Adds the stages of a turn.
    pub fn add(&mut self, stages: &Stages) {
        self.stages.add(stages);
    }

    /// Notes how many threads are at work and permitted from now on.
    pub fn threads(&mut self, active: usize, permitted: usize) {
        let now = Instant::now();
        let elapsed = now - self.since;
        self.busy += elapsed * self.active as u32;
        self.idle += elapsed * self.permitted.saturating_sub(self.active) as u32;
        (self.active, self.permitted, self.since) = (active, permitted, now);
    }
}
