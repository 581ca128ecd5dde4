//! How many workers a loader should have, and how far ahead they should work.
//!
//! Owns the decision: a function of what was measured over a window, what was set meanwhile, and what
//! was learnt before. Knows only numbers; measures nothing, changes nothing, reads no clock. Invariant:
//! what it answers lies within [`Bounds`], and what is fixed there is never changed.
//!
//! The aim is a training that does not wait, for the fewest cores and bytes, and without slowing the
//! step. First it jumps to what the measured costs of the stages ask for, in closed form (operational
//! analysis: the rate is at most `min(cores / cpu, 1 / serial, workers / work)`); then it moves by
//! trials, one knob at a time, each kept only for what was gained: the formula does not see locks,
//! caches and the training's own need of the processors, and a measurement does. It searches
//! downward, too, and rests when nothing helps, until what it rests on has changed.

mod advice;
mod bounds;
mod history;
mod reason;
mod trial;
mod window;

#[cfg(test)]
mod limits;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use history::{History, Knob, Level};
pub use reason::Reason;
pub use window::{Bottleneck, Machine, Window};

use history::{Failed, Phase, Seen};

/// A consumer that waits for less than this part of its time does not wait.
const WAITS: f64 = 0.01;

/// What rests is looked at anew when its rate or its step moved by this part of itself.
const DRIFT: f64 = 0.1;

/// Windows in a row that must have moved; twice as many each time that it led to nothing else.
const DRIFTED: u32 = 2;

/// Most doublings of that.
const DOUBLINGS: u32 = 4;

/// A move by more than this part never needs more than [`DRIFTED`] windows.
const FAR: f64 = 0.3;

/// What workers should be able to make, above what the training takes: room for what varies.
const HEADROOM: f64 = 1.2;

/// Part of the memory above which nothing is made ahead that need not be.
const PRESSURE: f64 = 0.9;

/// Part of the time that everything waits for memory, above which it is as short.
const STALLED: f64 = 0.1;

/// Part of the time that a quota keeps the process from processors, above which more workers gain
/// nothing.
const THROTTLED: f64 = 0.1;

/// What a loader may be told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads, or worker processes.
    pub workers: usize,
    /// Most batches in flight.
    pub depth: usize,
}

/// What is to be set now, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What to set from now on.
    pub settings: Settings,
    /// Why, also where nothing changes.
    pub reason: Reason,
}

/// Decides what to set after a window that ran with `settings`.
///
/// The same windows, in the same order, give the same answers.
pub fn decide(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> Decision {
    let window = &window.sane();
    let (next, reason) = if window.is_short_of_memory() {
        retreat(window, settings, history, bounds)
    } else if bounds.leave_nothing() {
        advice::advise(window, settings, history, bounds)
    } else {
        match std::mem::take(&mut history.phase) {
            Phase::Probe => jump(window, settings, history, bounds),
            Phase::Watching(seen) => trial::begin(seen, window, settings, history, bounds),
            Phase::Trying(on) => trial::judge(on, window, settings, history),
            Phase::Resting { was, off, windows } => {
                rest(was, (off, windows), window, settings, history)
            }
        }
    };
    let bounded = bounds.clamp(next, settings, window);
    let less = bounded.workers < settings.workers || bounded.depth < settings.depth;
    let reason = match reason {
        Reason::Pressure { .. } if bounded == settings && history.pressed => Reason::Steady,
        _ if next == settings && less => Reason::Budget {
            batch_bytes: window.batch_bytes,
            budget_bytes: bounds.budget_bytes,
        },
        reason => reason,
    };
    history.pressed = window.is_short_of_memory();
    Decision {
        settings: bounded,
        reason,
    }
}

/// Goes to where the costs of the stages say that the training does not wait.
fn jump(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    history.phase = Phase::Watching(Seen::default());
    (history.failed, history.coarse) = (Failed::default(), Failed::default());
    (history.best, history.run) = (0.0, None);
    let reason = Reason::Costs {
        work_s: window.work_s,
        step_s: window.step_s,
        bottleneck: window.bottleneck(),
    };
    (wanted(window, settings, bounds), reason)
}

/// Returns what the costs of the stages ask for, in closed form.
#[allow(clippy::cast_sign_loss)] // none is negative
fn wanted(window: &Window, settings: Settings, bounds: &Bounds) -> Settings {
    let most = bounds.useful_workers(window);
    let asked = HEADROOM * window.work_s / window.step_s.max(f64::MIN_POSITIVE);
    let workers = (asked.ceil().min(most as f64) as usize).max(1);
    let depth = bounds.scaled(settings, workers);
    let rate = window.batches / window.elapsed_s.max(f64::MIN_POSITIVE);
    let late = (window.tail_s * rate).ceil() as usize;
    let depth = depth.max(late.saturating_add(1).min(2 * depth));
    Settings {
        workers,
        depth: depth.min(bounds.deepest(window)),
    }
}

/// Leaves everything as it is, until that is no longer what it was.
fn rest(
    was: Level,
    (off, windows): (u32, u32),
    window: &Window,
    settings: Settings,
    history: &mut History,
) -> (Settings, Reason) {
    let (rate, step_s) = (window.rate(), window.step_s);
    let moved = |part: f64| {
        (rate - was.rate).abs() > part * was.rate
            || (step_s - was.step_s).abs() > part * was.batch_s()
    };
    let off = if moved(DRIFT) { off + 1 } else { 0 };
    let patience = if moved(FAR) {
        DRIFTED
    } else {
        DRIFTED << history.again.min(DOUBLINGS)
    };
    if off < patience {
        history.phase = Phase::Resting {
            was,
            off,
            windows: windows.saturating_add(1),
        };
        return (settings, Reason::Steady);
    }
    history.phase = Phase::Probe;
    let reason = Reason::Drifted {
        rate: (was.rate, rate),
        step_s: (was.step_s, step_s),
    };
    (settings, reason)
}

/// Gives memory back: what is made ahead first, then workers, whatever was on trial.
fn retreat(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    history.phase = Phase::Watching(Seen::default());
    history.failed.add(Knob::More);
    history.failed.add(Knob::Deeper);
    let reason = Reason::Pressure {
        memory_share: window.memory_share,
        stalled: window.machine.memory_stall,
    };
    let Settings { workers, depth } = settings;
    let least = bounds.least_depth(workers);
    let next = if depth > least {
        Settings {
            workers,
            depth: depth.div_ceil(2).max(least),
        }
    } else {
        let workers = workers.div_ceil(2);
        Settings {
            workers,
            depth: bounds.least_depth(workers),
        }
    };
    (next, reason)
}
