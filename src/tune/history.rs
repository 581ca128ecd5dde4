//! What was learnt from the windows before.

use super::{Settings, Window};

/// Windows of which the median counts.
const WINDOWS: usize = 3;

/// Windows of rest after which a new epoch is worth some trials: five minutes, at two seconds each.
const RESTED: u32 = 150;

/// A rate that differs by more than this part needs no second window.
const CLEAR: f64 = 0.1;

/// What was tried, and what it was like before.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) phase: Phase,
    /// Directions that gained nothing since the last jump.
    pub(super) failed: Failed,
    /// Directions in which several workers at once gained nothing.
    pub(super) coarse: Failed,
    /// The best rate since the last jump: small losses must not add up.
    pub(super) best: f64,
    /// What was kept last, and how often in a row: the next such move is larger.
    pub(super) run: Option<(Knob, u32)>,
    /// What was settled on last.
    settled: Option<Settings>,
    /// How often in a row it was the same again.
    pub(super) again: u32,
    /// That memory is short was said, and is so still.
    pub(super) pressed: bool,
    /// Advice was given on what is fixed.
    pub(super) advised: bool,
}

impl History {
    /// Returns that of a tuner whose first settings were found before.
    pub fn after_the_jump() -> History {
        History {
            phase: Phase::Watching(Seen::default()),
            ..History::default()
        }
    }

    /// Notes what is settled on.
    pub(super) fn settled_on(&mut self, settings: Settings) {
        let same = self.settled.replace(settings) == Some(settings);
        self.again = if same { self.again + 1 } else { 0 };
    }

    /// Has what was settled long ago tried anew, as at the begin of an epoch.
    pub fn rearm(&mut self) {
        if matches!(self.phase, Phase::Resting { windows, .. } if windows >= RESTED) {
            *self = History {
                pressed: self.pressed,
                ..History::after_the_jump()
            };
        }
    }
}

/// Directions that need not be tried again.
#[derive(Clone, Debug, Default)]
pub(super) struct Failed(Vec<Knob>);

impl Failed {
    /// Notes that a direction gained nothing.
    pub(super) fn add(&mut self, knob: Knob) {
        if !self.has(knob) {
            self.0.push(knob);
        }
    }

    /// Whether it did not.
    pub(super) fn has(&self, knob: Knob) -> bool {
        self.0.contains(&knob)
    }
}

/// What the next window is for.
#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    /// It tells what stages cost.
    #[default]
    Probe,
    /// It tells what the settings of now are worth.
    Watching(Seen),
    /// It tells what a change is worth.
    Trying(Trial),
    /// It tells whether anything changed.
    Resting {
        /// What it was like when it was settled.
        was: Level,
        /// Windows in a row that were different.
        off: u32,
        /// Windows that it rests.
        windows: u32,
    },
}

/// Windows at one setting.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What is known already, from before a change that was judged.
    known: Option<Level>,
    /// The window in which the setting changed is not looked at.
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

/// What a trial changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Returns the change that takes this one back.
    pub(super) fn opposite(self) -> Knob {
        match self {
            Knob::More => Knob::Fewer,
            Knob::Fewer => Knob::More,
            Knob::Deeper => Knob::Shallower,
            Knob::Shallower => Knob::Deeper,
        }
    }
}

/// Medians of some windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// Samples per second.
    pub rate: f64,
    /// The training's time for a batch, in seconds.
    pub step_s: f64,
    /// The part of its time that the training waits.
    pub waiting: f64,
}

impl Level {
    /// From one batch to the next, in seconds.
    pub(super) fn batch_s(&self) -> f64 {
        self.step_s / (1.0 - self.waiting).max(f64::EPSILON)
    }
}

impl Seen {
    /// Returns what needs no more windows than the one in which the setting changes.
    pub(super) fn of(level: Level) -> Seen {
        Seen {
            known: Some(level),
            ..Seen::default()
        }
    }

    /// Adds a window; returns the level when there are enough of them.
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

    /// Adds a window of a change; returns the level also when further windows would not change what
    /// follows from it: when the first one differs much from the rate before, or when two are on the same side
    /// of the rate from which on the change is kept, for then so is the median of three.
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
