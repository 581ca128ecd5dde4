//! Every interleaving of two threads and a consumer, over a hand-over of two batches.

use super::*;
use crate::pool::{Notifier, Source};
use crate::sync::explore;

/// Wakes no thread: the model starts its own.
struct NoWakeUps;

impl Notifier for NoWakeUps {
    fn notify(&self, _pieces: usize) {}
}

fn handed_over(fetches: bool, threads: usize) {
    explore(Some(2), move || {
        let work = Doubling {
            fetches,
            ..Doubling::default()
        };
        let limits = Limits {
            max_chunk: 1,
            ..limits(threads)
        };
        let stream = Stream::with_notifier(work, limits, 0, Box::new(NoWakeUps));
        stream.submit(vec![1, 2], 1, None);
        stream.submit(vec![3], 1, None);
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let source = stream.shared.clone();
                loom::thread::spawn(move || while source.turn() {})
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // A thread that met a batch being begun may have ended: finish what is left here.
        while stream.shared.turn() {}
        for expected in [vec![2, 4], vec![6]] {
            match stream.take(Duration::ZERO) {
                Taken::Ready(ready) => assert_eq!(ready.output.unwrap(), expected),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn loom_samples_are_made_once_and_handed_over() {
    handed_over(false, 2);
}

#[test]
fn loom_fetched_samples_are_made_once_and_handed_over() {
    handed_over(true, 2);
}

/// A batch with failed samples is made again, whichever thread notices first.
#[test]
fn loom_a_batch_that_is_made_again_is_handed_over() {
    explore(Some(2), || {
        let work = Doubling {
            fetches: true,
            pause: Some(Duration::ZERO),
            ..Doubling::default()
        };
        let limits = Limits {
            max_chunk: 1,
            ..limits(2)
        };
        let stream = Stream::with_notifier(work, limits, 0, Box::new(NoWakeUps));
        stream.submit(vec![FAIL, 2], 1, None);
        let source = stream.shared.clone();
        let thread = loom::thread::spawn(move || while source.turn() {});
        while stream.shared.turn() {}
        thread.join().unwrap();
        while stream.shared.turn() {}
        match stream.take(Duration::ZERO) {
            Taken::Ready(ready) => assert_eq!(ready.output.unwrap(), [2 * REDEEMED, 4]),
            other => panic!("{other:?}"),
        }
    });
}

/// A sample left to another thread is computed once, whichever thread ends last.
#[test]
fn loom_samples_left_by_computing_are_made_once() {
    explore(Some(2), || {
        let work = Doubling {
            fetches: true,
            executors: Some(Mutex::new(Vec::new())),
            ..Doubling::default()
        };
        let limits = Limits {
            max_chunk: 1,
            ..limits(2)
        };
        let stream = Stream::with_notifier(work, limits, 0, Box::new(NoWakeUps));
        stream.submit(vec![REFUSED_TWICE], 1, None);
        stream.submit(vec![2, DROPPED], 1, None);
        let source = stream.shared.clone();
        let thread = loom::thread::spawn(move || while source.turn() {});
        while stream.shared.turn() {}
        thread.join().unwrap();
        let executors = stream.shared.work.executors.as_ref().unwrap();
        loop {
            let thread = lock(executors).pop(); // released before the join: the thread may need the lock
            let Some(thread) = thread else { break };
            thread.join().unwrap();
            while stream.shared.turn() {}
        }
        match stream.take(Duration::ZERO) {
            Taken::Ready(ready) => assert_eq!(ready.output.unwrap(), [2 * REDEEMED]),
            other => panic!("{other:?}"),
        }
        match stream.take(Duration::ZERO) {
            Taken::Ready(ready) => assert!(matches!(ready.output, Err(Error::Sample { .. }))),
            other => panic!("{other:?}"),
        }
        assert_eq!(stream.stats().samples, 3);
    });
}

#[test]
fn loom_cancelling_meets_a_sample_left_by_computing() {
    explore(None, || {
        let work = Doubling {
            fetches: true,
            executors: Some(Mutex::new(Vec::new())),
            ..Doubling::default()
        };
        let stream = Stream::with_notifier(work, limits(1), 0, Box::new(NoWakeUps));
        stream.submit(vec![REFUSED], 1, None);
        let source = stream.shared.clone();
        let thread = loom::thread::spawn(move || while source.turn() {});
        drop(stream);
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_waiting_consumer_is_woken() {
    explore(None, || {
        let work = Doubling {
            fetches: false,
            ..Doubling::default()
        };
        let stream = Stream::with_notifier(work, limits(1), 0, Box::new(NoWakeUps));
        stream.submit(vec![1], 1, None);
        let source = stream.shared.clone();
        let thread = loom::thread::spawn(move || while source.turn() {});
        match stream.take(Duration::from_secs(1000)) {
            Taken::Ready(ready) => assert_eq!(ready.output.unwrap(), [2]),
            other => panic!("{other:?}"),
        }
        thread.join().unwrap();
    });
}

#[test]
fn loom_cancelling_meets_work_in_any_state() {
    explore(None, || {
        let work = Doubling {
            fetches: true,
            ..Doubling::default()
        };
        let stream = Stream::with_notifier(work, limits(1), 0, Box::new(NoWakeUps));
        stream.submit(vec![1, 2], 1, None);
        let source = stream.shared.clone();
        let thread = loom::thread::spawn(move || while source.turn() {});
        drop(stream);
        thread.join().unwrap();
    });
}
