//! The tuner's record of earlier windows.

use std::collections::BTreeSet;

use super::{Settings, Window};

/// Number of windows whose median counts.
const WINDOWS: usize = 3;

/// Idle windows after which a new epoch justifies some trials: five minutes, at two seconds each.
const RESTED: u32 = 150;

/// A rate that differs by more than this share needs no second window.
const CLEAR: f64 = 0.1;

/// The trials so far, and their results.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) phase: Phase,
    /// Directions that gained nothing since the last jump.
    pub(super) failed: BTreeSet<Knob>,
    /// Directions in which several workers at once gained nothing.
    pub(super) coarse: BTreeSet<Knob>,
    /// The best rate since the last jump: small losses must not add up.
    pub(super) best: f64,
    /// The last knob that was kept, and how often in a row: the next such move is larger.
    pub(super) run: Option<(Knob, u32)>,
    /// The settings that were settled on last.
    settled: Option<Settings>,
    /// Number of times in a row that they were the same.
    pub(super) again: u32,
    /// True if a shortage of memory was reported and lasts.
    pub(super) pressed: bool,
    /// True if advice on fixed settings was given.
    pub(super) advised: bool,
}

impl History {
    /// Returns the history of a tuner whose first settings come from a profile.
    pub fn after_the_jump() -> History {
        History {
            phase: Phase::Watching(Seen::default()),
            ..History::default()
        }
    }

    /// Records the settings that were settled on.
    pub(super) fn settled_on(&mut self, settings: Settings) {
        let same = self.settled.replace(settings) == Some(settings);
        self.again = if same { self.again + 1 } else { 0 };
    }

    /// Allows settings that were settled long ago to be tried again, as at the start of an epoch.
    pub fn rearm(&mut self) {
        if matches!(self.phase, Phase::Resting { windows, .. } if windows >= RESTED) {
            *self = History {
                pressed: self.pressed,
                ..History::after_the_jump()
            };
        }
    }
}

/// The purpose of the next window.
#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    /// To measure the costs of the stages.
    #[default]
    Probe,
    /// To measure the current settings.
    Watching(Seen),
    /// To measure a change.
    Trying(Trial),
    /// To detect changes of the load.
    Resting {
        /// The level when it settled.
        was: Level,
        /// Windows in a row that differed from it.
        off: u32,
        /// Number of windows at rest.
        windows: u32,
    },
}

/// Windows measured at one setting.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The level if it is known already, from before a change that was judged.
    known: Option<Level>,
    /// True once the window in which the setting changed was skipped.
    skipped: bool,
    rates: Vec<f64>,
    steps: Vec<f64>,
    waits: Vec<f64>,
}

/// A change on trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) knob: Knob,
    pub(super) before: Settings,
    pub(super) was: Level,
    pub(super) seen: Seen,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knob {
    /// More workers.
    More,
    /// Fewer workers.
    Fewer,
    /// More batches in flight.
    Deeper,
    /// Fewer batches in flight.
    Shallower,
}

impl Knob {
    /// Returns the change that undoes this one.
    pub(super) fn opposite(self) -> Knob {
        match self {
            Knob::More => Knob::Fewer,
            Knob::Fewer => Knob::More,
            Knob::Deeper => Knob::Shallower,
            Knob::Shallower => Knob::Deeper,
        }
    }
}

/// Medians over some windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// Samples per second.
    pub rate: f64,
    /// The training's time for a batch, in seconds.
    pub step_s: f64,
    /// The share of its time that the training waits.
    pub waiting: f64,
}

impl Level {
    /// Returns the time from one batch to the next, in seconds.
    pub(super) fn batch_s(&self) -> f64 {
        self.step_s / (1.0 - self.waiting).max(f64::EPSILON)
    }
}

impl Seen {
    /// Returns windows that are complete after the one in which the setting changes.
    pub(super) fn of(level: Level) -> Seen {
        Seen {
            known: Some(level),
            ..Seen::default()
        }
    }

    /// Adds a window; returns the level once there are enough windows.
    pub(super) fn add(&mut self, window: &Window) -> Option<Level> {
        if let Some(level) = self.known.take() {
            return Some(level);
        }
        if !self.skipped {
            self.skipped = true;
            return None;
        }
        self.rates.push(window.rate());
        self.steps.push(window.step_s);
        self.waits.push(window.waiting());
        (self.rates.len() >= WINDOWS).then(|| self.level())
    }

    /// Adds a window of a change. Returns the level early if further windows cannot change the verdict: if
    /// the first window differs much from the rate before, or if two are on the same side of the rate from
    /// which the change is kept, because then the median of three is too.
    pub(super) fn judge(&mut self, window: &Window, before: f64, kept: f64) -> Option<Level> {
        self.add(window).or_else(|| {
            let far = |rate: &f64| (rate - before).abs() > CLEAR * before;
            let clear = match self.rates[..] {
                [one] => far(&one),
                [one, other] => (one >= kept) == (other >= kept),
                _ => false,
            };
            clear.then(|| self.level())
        })
    }

    fn level(&mut self) -> Level {
        Level {
            rate: median(&mut self.rates),
            step_s: median(&mut self.steps),
            waiting: median(&mut self.waits),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        f64::midpoint(values[half - 1], values[half])
    }
}
