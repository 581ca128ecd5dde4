//! The time of one call: the median of rounds, and how far they lie apart.

#![allow(clippy::print_stdout)] // what a bench is for

use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 31;

/// Prints the median time of a call over rounds of a tenth of a second, with the second and the last but one decile.
pub(crate) fn measure<R>(name: &str, mut call: impl FnMut() -> R) {
    let mut time = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        start.elapsed()
    };
    let mut calls = 1;
    while time(calls) < ROUND {
        calls *= 2;
    }
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| time(calls) / calls).collect();
    rounds.sort();
    let at = |tenths: usize| rounds[(ROUNDS - 1) * tenths / 10];
    println!(
        "{name:40} {:>12.3?}  ({:.3?} to {:.3?})",
        at(5),
        at(1),
        at(9)
    );
}
