//! The engine on the threads of the pool.
#![allow(clippy::cast_possible_wrap)] // small counts

use std::collections::HashMap;

use super::*;
use crate::pool::{Notifier, Source};
use crate::spans::{Recording, Spans, Stage};
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;

fn doubling(fetches: bool) -> Doubling {
    Doubling {
        fetches,
        ..Doubling::default()
    }
}

/// Degenerate and large sizes.
fn sizes() -> impl Iterator<Item = (usize, Limits)> {
    [(1, 1), (1, 3), (2, 1), (8, 1), (8, 64)]
        .into_iter()
        .flat_map(|(threads, max_chunk)| {
            let batches: &[usize] = if cfg!(miri) { &[1, 7] } else { &[1, 7, 64] };
            batches.iter().map(move |&batch| {
                (
                    batch,
                    Limits {
                        max_chunk,
                        ..limits(threads)
                    },
                )
            })
        })
}

/// Returns `rounds`, or a tenth of them under Miri.
const fn rounds(rounds: u8) -> u8 {
    if cfg!(miri) { rounds / 10 } else { rounds }
}

fn next(stream: &Stream<Doubling>) -> super::super::Ready<Vec<i64>> {
    match stream.take(Duration::from_secs(20)) {
        Taken::Ready(ready) => ready,
        other => panic!("no batch: {other:?}"),
    }
}

#[test]
fn batches_come_in_order() {
    const BATCHES: u8 = rounds(40);
    for fetches in [false, true] {
        for (batch, limits) in sizes() {
            let stream = Stream::open(doubling(fetches), limits, 5).unwrap();
            let task = |seq: i64| {
                (0..batch as i64)
                    .map(|n| seq * 1000 + n)
                    .collect::<Vec<_>>()
            };
            let mut submitted = 0_u8;
            for seq in 0..BATCHES {
                while submitted < BATCHES && stream.has_room(1) {
                    let state = Some(vec![submitted].into_boxed_slice());
                    stream.submit(task(i64::from(submitted)), 1, state);
                    submitted += 1;
                }
                let ready = next(&stream);
                assert_eq!(ready.seq, 5 + u64::from(seq));
                assert_eq!(ready.state.as_deref(), Some(&[seq][..]));
                let doubled: Vec<i64> = task(i64::from(seq)).iter().map(|n| 2 * n).collect();
                assert_eq!(ready.output.unwrap(), doubled);
            }
            assert!(matches!(stream.take(Duration::ZERO), Taken::Exhausted));
            assert_eq!(stream.stats().samples, u64::from(BATCHES) * batch as u64);
        }
    }
}

/// Each batch has its stages, and no thread does two things at a time.
#[test]
fn spans_tell_what_threads_did_for_each_batch() {
    const BATCHES: u64 = 20;
    for fetches in [false, true] {
        for (batch, limits) in sizes() {
            let spans = Arc::new(Spans::new(1 << 14));
            let stream = Stream::open(doubling(fetches), limits, 5).unwrap();
            stream.record(Some(Recording {
                spans: spans.clone(),
                epoch: 3,
            }));
            for _ in 0..BATCHES {
                stream.submit((0..batch as i64).collect(), 1, None);
                next(&stream);
            }
            let mut ends = HashMap::new();
            let mut stages = HashMap::<u64, Vec<Stage>>::new();
            for span in spans.since(0).0 {
                let end = ends.entry(span.thread).or_insert(0);
                assert!(*end <= span.begin_ns && span.begin_ns < span.end_ns);
                *end = span.end_ns;
                assert_eq!(span.epoch, 3);
                stages.entry(span.batch).or_default().push(span.stage);
            }
            assert_eq!(stages.len() as u64, BATCHES);
            for seq in 5..5 + BATCHES {
                for stage in [Stage::Begin, Stage::Transform, Stage::Collate] {
                    assert!(stages[&seq].contains(&stage), "{seq}: {stage:?}");
                }
            }
            stream.record(None);
            let count = spans.since(0).1;
            stream.submit(vec![1], 1, None);
            next(&stream);
            assert_eq!(spans.since(0).1, count);
        }
    }
}

#[test]
fn a_tolerant_stream_tries_all_samples_and_makes_the_batch_again() {
    for pause in [Duration::ZERO, Duration::from_millis(5)] {
        for fetches in [false, true] {
            for (count, limits) in sizes() {
                let work = Doubling {
                    pause: Some(pause),
                    ..doubling(fetches)
                };
                let stream = Stream::open(work, limits, 0).unwrap();
                let good: Vec<i64> = (0..count as i64).collect();
                let mut torn = good.clone();
                torn.insert(0, FAIL);
                torn.push(FAIL);
                stream.submit(torn, 1, None);
                stream.submit(good.clone(), 1, None);
                stream.submit(vec![FAIL, FAIL], 1, None);
                stream.submit(vec![1, FAIL, PANIC], 1, None);
                let doubled: Vec<i64> = good.iter().map(|n| 2 * n).collect();
                let redeemed = [2 * REDEEMED];
                let expected = [&redeemed[..], &doubled, &redeemed].concat();
                assert_eq!(next(&stream).output.unwrap(), expected);
                assert_eq!(next(&stream).output.unwrap(), doubled);
                assert_eq!(next(&stream).output.unwrap(), Vec::<i64>::new());
                assert!(matches!(next(&stream).output, Err(Error::Sample { .. })));
                // each once, however often it was tried
                assert_eq!(stream.stats().samples, 2 * count as u64 + 7);
            }
        }
    }
}

#[test]
fn a_batch_that_waits_to_be_made_again_does_not_delay_the_others() {
    let work = Doubling {
        pause: Some(Duration::from_millis(300)),
        ..doubling(true)
    };
    let limits = Limits {
        in_order: false,
        ..limits(1)
    };
    let stream = Stream::open(work, limits, 0).unwrap();
    stream.submit(vec![FAIL, 1], 1, None);
    stream.submit(vec![2], 1, None);
    assert_eq!(next(&stream).seq, 1);
    assert_eq!(next(&stream).output.unwrap(), [2 * REDEEMED, 2]);
}

#[test]
fn an_empty_batch_is_a_batch() {
    let stream = Stream::open(doubling(true), limits(2), 0).unwrap();
    stream.submit(Vec::new(), 0, None);
    assert_eq!(next(&stream).output.unwrap(), Vec::<i64>::new());
}

#[test]
fn a_batch_fails_with_its_first_failure_by_position() {
    for fetches in [false, true] {
        for (_, limits) in sizes() {
            let stream = Stream::open(doubling(fetches), limits, 0).unwrap();
            stream.submit(vec![1, FAIL_SLOWLY, FAIL, 4], 0, None);
            stream.submit(vec![1, 2], 0, None);
            match next(&stream).output {
                Err(Error::Sample {
                    position,
                    index,
                    seq,
                    ..
                }) => {
                    assert_eq!((position, index, seq), (1, FAIL_SLOWLY, 0));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(next(&stream).output.unwrap(), [2, 4]);
        }
    }
}

#[test]
fn a_panic_takes_the_place_of_its_batch() {
    let stream = Stream::open(doubling(false), limits(1), 0).unwrap();
    stream.submit(vec![PANIC], 0, None);
    stream.submit(vec![3], 0, None);
    let error = next(&stream).output.unwrap_err().to_string();
    assert!(error.contains("asked to"), "{error}");
    assert_eq!(next(&stream).output.unwrap(), [6]);
}

#[test]
fn another_executor_completes_samples() {
    let (sender, receiver) = mpsc::channel();
    let work = Doubling {
        fetches: true,
        foreign: Some(Mutex::new(sender)),
        ..doubling(true)
    };
    let stream = Stream::open(work, limits(2), 0).unwrap();
    let batches = if cfg!(miri) { 20 } else { 50 };
    for seq in 0..batches {
        stream.submit((seq..seq + 5).collect(), 0, None);
    }
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let executor = std::thread::spawn(move || {
        // a failed batch does not compute all of its samples, so the number that come is unknown
        while !is_over.load(Ordering::Relaxed) {
            let wait = Duration::from_millis(5);
            let Ok((number, completion)) = receiver.recv_timeout(wait) else {
                continue;
            };
            match number {
                9 => drop(completion),
                11 => completion.failed(Error::Closed),
                _ => completion.fetched(2 * number),
            }
        }
    });
    for seq in 0..batches {
        let output = next(&stream).output;
        let numbers: Vec<i64> = (seq..seq + 5).collect();
        if numbers.contains(&9) || numbers.contains(&11) {
            assert!(output.is_err());
        } else {
            let expected = numbers
                .iter()
                .map(|&n| 2 * n * if n % 2 == 1 { 2 } else { 1 });
            assert_eq!(output.unwrap(), expected.collect::<Vec<_>>());
        }
    }
    over.store(true, Ordering::Relaxed);
    executor.join().unwrap();
}

#[test]
fn a_thread_that_computes_leaves_samples_to_others() {
    for (batch, limits) in sizes() {
        let stream = Stream::open(doubling(true), limits, 0).unwrap();
        for seq in 0..i64::from(rounds(20)) {
            let numbers = (0..batch as i64).map(|n| match (n + seq) % 6 {
                0 => REFUSED,
                3 => REFUSED_TWICE,
                _ => n,
            });
            stream.submit(numbers.collect(), 0, None);
            stream.submit(vec![1, DROPPED, FAIL], 0, None);
        }
        for seq in 0..i64::from(rounds(20)) {
            let doubled =
                (0..batch as i64).map(|n| 2 * if (n + seq) % 3 == 0 { REDEEMED } else { n });
            assert_eq!(next(&stream).output.unwrap(), doubled.collect::<Vec<_>>());
            match next(&stream).output {
                Err(Error::Sample { position, .. }) => assert_eq!(position, 1),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn unordered_batches_come_as_they_finish() {
    let limits = Limits {
        in_order: false,
        ..limits(2)
    };
    let (sender, receiver) = mpsc::channel();
    let work = Doubling {
        fetches: true,
        foreign: Some(Mutex::new(sender)),
        ..doubling(true)
    };
    let stream = Stream::open(work, limits, 0).unwrap();
    stream.submit(vec![1], 0, None);
    stream.submit(vec![2], 0, None);
    let held = receiver.recv().unwrap();
    assert_eq!(next(&stream).seq, 1);
    held.1.fetched(2 * held.0);
    assert_eq!(next(&stream).seq, 0);
}

/// Counts the threads that are woken.
#[derive(Default)]
struct WakeUps(Arc<AtomicUsize>);

impl Notifier for WakeUps {
    fn notify(&self, pieces: usize) {
        self.0.fetch_add(pieces, Ordering::Relaxed);
    }
}

#[test]
fn a_consumer_of_cheap_batches_counts_as_a_thread() {
    for (fetches, threads, samples, woken) in [
        (false, 3, 4, 2), // 10 us each; the consumer makes some of them
        (false, 1, 4, 1), // at least one thread is woken
        (false, 3, 8, 3), // too expensive for the consumer
        (true, 3, 4, 3),  // the consumer reads no files
    ] {
        let notifier = WakeUps::default();
        let count = notifier.0.clone();
        let limits = Limits {
            max_chunk: 1,
            ..limits(threads)
        };
        let stream = Stream::with_notifier(doubling(fetches), limits, 0, Box::new(notifier));
        stream.submit(vec![1; samples], 1, None);
        assert_eq!(count.load(Ordering::Relaxed), woken);
    }
}

#[test]
fn threads_leave_a_permit_to_a_consumer_of_cheap_batches() {
    for (samples, threads) in [(4, 1), (8, 2)] {
        let limits = Limits {
            max_chunk: 1,
            ..limits(2)
        };
        let stream =
            Stream::with_notifier(doubling(false), limits, 0, Box::new(WakeUps::default()));
        for _ in 0..3 {
            stream.submit(vec![1; samples], 1, None);
        }
        let mut state = lock(&stream.shared.state);
        let mut claims = Vec::new();
        while let Some(claim) = state.claim(false) {
            claims.push(claim);
        }
        assert_eq!(claims.len(), threads);
        assert_eq!(state.claim(true).is_some(), threads < 2);
        assert!(state.claim(true).is_none());
    }
}

#[cfg_attr(miri, ignore = "no batch is small by Miri's clock")]
#[test]
fn one_turn_makes_several_small_batches() {
    let limits = limits(1);
    let stream = Stream::with_notifier(doubling(false), limits, 0, Box::new(WakeUps::default()));
    for _ in 0..3 {
        stream.submit(vec![1], 1, None);
    }
    assert!(stream.shared.work_on(true));
    assert_eq!(lock(&stream.shared.state).unbegun, 2);
    assert!(stream.shared.turn());
    assert_eq!(lock(&stream.shared.state).unbegun, 0);
    assert!(!stream.shared.turn());
    for _ in 0..3 {
        assert_eq!(next(&stream).output.unwrap(), [2]);
    }
}

#[test]
fn the_bounds_hold_at_submission() {
    let limits = Limits {
        depth: 3,
        budget_bytes: 100,
        ..limits(1)
    };
    let stream = Stream::open(doubling(false), limits, 0).unwrap();
    assert!(stream.has_room(1000));
    stream.submit(vec![1], 1000, None);
    assert!(!stream.has_room(1));
    next(&stream);
    for _ in 0..3 {
        assert!(stream.has_room(30));
        stream.submit(vec![1], 30, None);
    }
    assert!(!stream.has_room(0));
}

#[test]
fn permits_change_while_running() {
    let stream = Stream::open(doubling(true), limits(1), 0).unwrap();
    for round in 0..usize::from(rounds(200)) {
        let threads = [1, 4, 2][round % 3];
        stream.adjust(|limits| limits.threads = threads);
        stream.submit((0..9).collect(), 0, None);
        assert_eq!(next(&stream).output.unwrap().len(), 9);
    }
}

#[test]
fn a_stream_can_be_dropped_while_threads_work() {
    for _ in 0..rounds(50) {
        let stream = Stream::open(doubling(true), limits(4), 0).unwrap();
        for _ in 0..8 {
            stream.submit((0..64).collect(), 0, None);
        }
    }
}

#[test]
fn long_work_ends_when_its_stream_is_dropped() {
    let (open, gate) = mpsc::sync_channel(0);
    let work = Doubling {
        gate: Some(Mutex::new(gate)),
        ..doubling(false)
    };
    let stream = Stream::open(work, limits(1), 0).unwrap();
    stream.submit(vec![LONG], 0, None);
    open.send(()).unwrap(); // the work has begun
    drop(stream);
    while open.try_send(()) != Err(mpsc::TrySendError::Disconnected(())) {
        std::thread::yield_now(); // the last thread in a turn drops the gate
    }
}
