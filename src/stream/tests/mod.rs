//! The engine with work that exists only in tests: other executors, panics, degenerate sizes.

#[cfg(loom)]
mod with_loom;
#[cfg(not(loom))]
mod with_threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
#[cfg(not(loom))]
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::thread::{JoinHandle, spawn};

use super::{Again, Chunk, Completion, Limits, Stream, Taken, Work};
use crate::error::{Error, Result};
use crate::stats::Stages;
use crate::sync::{Mutex, lock};
use crate::wanted;

/// A number, and the duty to complete its sample.
type LeftSample = (i64, Completion<Doubling>);

/// Doubles numbers; the value of a number selects what happens to it on the way.
#[derive(Default)]
struct Doubling {
    fetches: bool,
    /// Receives the odd numbers when they are computed, for another executor.
    foreign: Option<Mutex<mpsc::Sender<LeftSample>>>,
    /// Opens the gate at which [`GATE`] and [`LONG`] wait.
    gate: Option<Mutex<mpsc::Receiver<()>>>,
    /// Threads to which computing left a sample.
    executors: Option<Mutex<Vec<JoinHandle<()>>>>,
    /// Puts [`REDEEMED`] in the place of numbers that fail, after this pause.
    pause: Option<Duration>,
}

const PANIC: i64 = -1;
const FAIL: i64 = -2;
const FAIL_SLOWLY: i64 = -3;
/// Computed once the gate opens.
const GATE: i64 = -4;
/// Computed, once the gate opens, until the stream is cancelled.
const LONG: i64 = -8;
/// Left to a thread of its own when it is computed; that thread fetches [`REDEEMED`] in its place.
const REFUSED: i64 = -5;
const REDEEMED: i64 = 21;
/// As [`REFUSED`], but that thread drops the completion.
const DROPPED: i64 = -6;
/// As [`REFUSED`], but that thread fetches [`REFUSED`].
const REFUSED_TWICE: i64 = -7;

struct Batch {
    numbers: Vec<i64>,
    doubled: Mutex<Vec<Option<i64>>>,
}

impl Work for Doubling {
    type Task = Vec<i64>;
    type Batch = Batch;
    type Fetched = i64;
    type Output = Vec<i64>;

    fn samples(&self, task: &Vec<i64>) -> usize {
        task.len()
    }

    fn fetches(&self) -> bool {
        self.fetches
    }

    fn cost_ns(&self) -> f64 {
        10_000.0
    }

    fn begin(&self, numbers: Vec<i64>) -> Result<Batch> {
        let doubled = Mutex::new(vec![None; numbers.len()]);
        Ok(Batch { numbers, doubled })
    }

    fn index(&self, batch: &Batch, position: usize) -> i64 {
        batch.numbers[position]
    }

    fn fetch(&self, batch: &Batch, position: usize, _stages: &mut Stages) -> Result<i64> {
        Ok(batch.numbers[position])
    }

    fn compute(
        &self,
        batch: &Batch,
        chunk: Chunk<i64>,
        _begun: Instant,
        later: &dyn Fn(usize) -> Completion<Self>,
        failures: &mut Vec<(usize, Error)>,
        _stages: &mut Stages,
    ) {
        let samples = match chunk {
            Chunk::Range(range) => range.map(|at| (at, batch.numbers[at])).collect(),
            Chunk::Fetched(samples) => samples,
        };
        for (position, number) in samples {
            if let Some(foreign) = &self.foreign
                && number % 2 == 1
            {
                // an executor that is gone drops the completion
                drop(lock(foreign).send((number, later(position))));
                continue;
            }
            match number {
                PANIC => panic!("asked to"),
                GATE => {
                    let gate = self.gate.as_ref().map(lock);
                    gate.and_then(|gate| gate.recv().ok());
                    lock(&batch.doubled)[position] = Some(2 * GATE);
                }
                LONG => {
                    let gate = self.gate.as_ref().map(lock);
                    gate.and_then(|gate| gate.recv().ok());
                    while wanted::is_wanted() {
                        std::thread::yield_now();
                    }
                }
                FAIL => failures.push((position, Error::Abandoned)),
                FAIL_SLOWLY => {
                    std::thread::sleep(Duration::from_millis(20));
                    failures.push((position, Error::Abandoned));
                }
                REFUSED | DROPPED | REFUSED_TWICE => {
                    let completion = later(position);
                    let thread = spawn(move || match number {
                        REFUSED => completion.fetched(REDEEMED),
                        REFUSED_TWICE => completion.fetched(REFUSED),
                        _ => drop(completion),
                    });
                    if let Some(executors) = &self.executors {
                        lock(executors).push(thread);
                    }
                }
                number => lock(&batch.doubled)[position] = Some(2 * number),
            }
        }
    }

    fn finish(&self, batch: Batch) -> Result<Vec<i64>> {
        let doubled = std::mem::take(&mut *lock(&batch.doubled));
        doubled
            .into_iter()
            .collect::<Option<_>>()
            .ok_or(Error::Abandoned)
    }

    fn is_tolerant(&self) -> bool {
        self.pause.is_some()
    }

    fn again(
        &self,
        seq: u64,
        mut batch: Batch,
        failures: Vec<(usize, Error)>,
    ) -> Result<Again<Vec<i64>, Vec<i64>>> {
        let has_panicked = failures
            .iter()
            .any(|(_, error)| matches!(error, Error::Panic { .. }));
        let Some(pause) = self.pause.filter(|_| !has_panicked) else {
            return Err(self.first_failure(seq, &batch, failures));
        };
        if failures.len() == batch.numbers.len() {
            return Ok(Again::Output(Vec::new()));
        }
        for (position, _) in failures {
            batch.numbers[position] = REDEEMED;
        }
        Ok(Again::Task(batch.numbers, pause))
    }
}

fn limits(threads: usize) -> Limits {
    Limits {
        depth: 2 * threads,
        budget_bytes: usize::MAX,
        threads,
        max_chunk: usize::MAX,
        in_order: true,
    }
}
