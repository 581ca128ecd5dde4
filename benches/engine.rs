//! What the engine costs: the hand-over of a batch of no work, and one `next` over rows in memory.
//!
//! `cargo bench --no-default-features --bench engine`

#![allow(clippy::cast_possible_wrap)] // small constants

mod measure;

use std::sync::Arc;
use std::time::{Duration, Instant};

use _lib::column::{Column, Rows};
use _lib::error::{Error, Result};
use _lib::memory::{Dtype, View};
use _lib::order::Indices;
use _lib::program::{Options, Program, Run, Task};
use _lib::stats::Stages;
use _lib::stream::{Chunk, Completion, Limits, Stream, Taken, Work};
use measure::measure;

const ROWS: usize = 1_000_000;
const ROW_FLOATS: usize = 32;

/// Batches of no samples.
struct Nothing;

impl Work for Nothing {
    type Task = ();
    type Batch = ();
    type Fetched = ();
    type Output = ();

    fn samples(&self, _task: &()) -> usize {
        0
    }
    fn fetches(&self) -> bool {
        false
    }
    fn cost_ns(&self) -> f64 {
        1.0
    }
    fn begin(&self, _task: ()) -> Result<()> {
        Ok(())
    }
    fn index(&self, _batch: &(), _position: usize) -> i64 {
        0
    }
    fn fetch(&self, _batch: &(), _position: usize, _stages: &mut Stages) -> Result<()> {
        Ok(())
    }
    fn compute(
        &self,
        _batch: &(),
        _chunk: Chunk<()>,
        _begun: Instant,
        _later: &dyn Fn(usize) -> Completion<Self>,
        _failures: &mut Vec<(usize, Error)>,
        _stages: &mut Stages,
    ) {
    }
    fn finish(&self, _batch: ()) -> Result<()> {
        Ok(())
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

fn take<W: Work>(stream: &Stream<W>) -> W::Output {
    match stream.take(Duration::from_secs(10)) {
        Taken::Ready(ready) => ready.output.expect("no sample fails"),
        _ => panic!("no batch"),
    }
}

fn hand_over() {
    for threads in [1, 2] {
        let stream = Stream::open(Nothing, limits(threads), 0).expect("threads");
        for _ in 1..2 * threads {
            stream.submit((), 0, None);
        }
        measure(&format!("hand-over, threads={threads}"), || {
            stream.submit((), 0, None);
            take(&stream);
        });
    }
}

fn next_over_rows() {
    let array = vec![1_u8; ROWS * ROW_FLOATS * 4];
    let (pointer, len) = (array.as_ptr(), array.len());
    // SAFETY: the array is the view's owner, and neither moves nor is written to.
    #[allow(unsafe_code)]
    let view = unsafe { View::new(pointer, len, Box::new(array)) };
    let row_bytes = (ROW_FLOATS * 4) as isize;
    let rows = Rows::new(
        view,
        0,
        &[ROWS, ROW_FLOATS],
        &[row_bytes, 4],
        Dtype::Float32,
    );
    let leaf: Arc<dyn Column> = Arc::new(rows.expect("a dense array"));
    let program = Program::new(vec![leaf], vec![false]).expect("one leaf");
    let run = Run::new(Arc::new(program), Options::default(), None);
    // A walk that visits every row once, in no order that a prefetcher knows.
    let order: Arc<[i64]> = (0..ROWS as i64)
        .map(|i| i * 982_451_653 % ROWS as i64)
        .collect();

    for batch in [32, 1024] {
        let stream = Stream::open(run.clone(), limits(2), 0).expect("threads");
        let mut at = 0;
        let mut submit = || {
            at = (at + batch) % (ROWS - batch);
            let indices = Indices::List(order.clone(), at..at + batch);
            stream.submit(
                Task {
                    indices,
                    first: 0,
                    batched: true,
                    destinations: Vec::new(),
                    attempts: None,
                },
                0,
                None,
            );
        };
        for _ in 0..3 {
            submit();
        }
        measure(&format!("next, {batch} rows of 128 B"), || {
            submit();
            take(&stream)
        });
    }
}

fn main() {
    hand_over();
    next_over_rows();
}
