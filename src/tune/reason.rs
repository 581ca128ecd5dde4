//! The reasons of decisions, in words.

use std::fmt;

use super::history::{Knob, Level};
use super::{Bottleneck, STALLED, Settings};

/// The reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The costs of the stages ask for this number of workers.
    Costs {
        /// Thread-seconds per batch.
        work_s: f64,
        /// The training's time per batch, in seconds.
        step_s: f64,
        /// The bottleneck of the loader.
        bottleneck: Bottleneck,
    },
    /// Windows are collected.
    Measuring,
    /// A change is tried.
    Trying(Knob, Settings),
    /// A change was kept.
    Kept(Knob, Level, Level),
    /// A change was undone: it gained nothing.
    NoGain(Knob, Level, Level),
    /// A change was undone: it slowed the training's own steps.
    SlowedStep(Knob, Level, Level),
    /// No remaining change would help.
    Settled(Bottleneck),
    /// Nothing changed.
    Steady,
    /// The rate or the step differs from that at which it settled.
    Drifted {
        /// Samples per second, before and now.
        rate: (f64, f64),
        /// Seconds of a step, before and now.
        step_s: (f64, f64),
    },
    /// Memory is short.
    Pressure {
        /// The share that is used.
        memory_share: f64,
        /// The share of the time in which everything waited for it.
        stalled: f64,
    },
    /// The batches in flight exceed the budget.
    Budget {
        /// Bytes of a batch.
        batch_bytes: f64,
        /// Maximum bytes of the batches in flight.
        budget_bytes: f64,
    },
    /// The user's setting is kept; this is what the costs of the stages ask for.
    Advice {
        /// The number of workers that the user set, and the one that the costs ask for.
        workers: (usize, usize),
        /// Thread-seconds per batch.
        work_s: f64,
        /// The training's time per batch, in seconds.
        step_s: f64,
        /// The bottleneck of the loader.
        bottleneck: Bottleneck,
    },
}

impl Reason {
    /// Returns true if it is worth reporting.
    pub fn is_news(&self) -> bool {
        !matches!(self, Reason::Measuring | Reason::Steady)
    }

    /// Describes the effect of a change, once it was judged.
    pub fn effect(&self) -> Option<String> {
        match self {
            Reason::Kept(_, was, is) | Reason::NoGain(_, was, is) => Some(format!(
                "{:.0} samples/s in place of {:.0}",
                is.rate, was.rate
            )),
            Reason::SlowedStep(_, was, is) => Some(format!(
                "the training's step took {} in place of {}",
                Milliseconds(is.step_s),
                Milliseconds(was.step_s)
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Costs {
                work_s,
                step_s,
                bottleneck,
            } => write!(
                f,
                "a batch takes {} of work and the training {} for one; the bottleneck is {bottleneck}",
                Milliseconds(*work_s),
                Milliseconds(*step_s),
            ),
            Reason::Measuring => f.write_str("measuring"),
            Reason::Trying(knob, _) => write!(f, "trying {knob}"),
            Reason::Kept(knob, ..) => write!(f, "{knob} kept"),
            Reason::NoGain(knob, ..) | Reason::SlowedStep(knob, ..) => {
                write!(f, "{knob} taken back")
            }
            Reason::Settled(bottleneck) => write!(f, "settled; the bottleneck is {bottleneck}"),
            Reason::Steady => f.write_str("steady"),
            Reason::Drifted { rate, step_s } => write!(
                f,
                "no longer as it was: {:.0} samples/s in place of {:.0}, a step of {} in place of {}",
                rate.1,
                rate.0,
                Milliseconds(step_s.1),
                Milliseconds(step_s.0)
            ),
            Reason::Pressure { stalled, .. } if *stalled > STALLED => write!(
                f,
                "for {:.0} % of the time everything waits for memory",
                stalled * 100.0
            ),
            Reason::Pressure { memory_share, .. } => {
                write!(f, "{:.0} % of the memory is used", memory_share * 100.0)
            }
            Reason::Budget {
                batch_bytes,
                budget_bytes,
            } => write!(
                f,
                "the batches in flight, {:.1} MB each, exceed the memory budget of {:.0} MB",
                batch_bytes / 1e6,
                budget_bytes / 1e6
            ),
            Reason::Advice {
                workers: (chosen, asked),
                work_s,
                step_s,
                bottleneck,
            } => {
                write!(
                    f,
                    "num_workers={chosen} is obeyed; AUTO would begin with {asked}, for a batch takes {} \
                     of work and the training {} for one; the bottleneck is {bottleneck}",
                    Milliseconds(*work_s),
                    Milliseconds(*step_s)
                )
            }
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Knob::More => "more workers",
            Knob::Fewer => "fewer workers",
            Knob::Deeper => "more batches ahead",
            Knob::Shallower => "fewer batches ahead",
        })
    }
}

/// Seconds, written in a unit that suits a batch.
struct Milliseconds(f64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 * 1e3)
    }
}
