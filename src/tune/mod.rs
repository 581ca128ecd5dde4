//! Chooses the number of workers of a loader, and how far ahead they work.
//!
//! Owns the decision: a function of the measurements of a window, the settings during it, and the history.
//! Knows only numbers; measures nothing, changes nothing, reads no clock. Invariant: its settings lie within
//! [`Bounds`], and fixed settings are never changed.
//!
//! The aim is a training that does not wait, with the fewest cores and bytes, and without slowing its steps.
//! First the tuner jumps to the settings that the measured costs of the stages ask for, in closed form
//! (operational analysis: the rate is at most `min(cores / cpu, 1 / serial, workers / work)`). Then it moves
//! by trials, one knob at a time, and keeps only measured gains: the formula sees neither locks nor caches
//! nor the training's own need of the cores, and a measurement does. It also searches downward. It rests when
//! nothing helps, until the load changes.

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

use history::{Phase, Seen};

/// A consumer that waits for less than this share of its time counts as not waiting.
const WAITS: f64 = 0.01;

/// A settled state is reconsidered when its rate or its step moved by this share.
const DRIFT: f64 = 0.1;

/// Windows in a row that must have moved; twice as many after each time that it led to nothing new.
const DRIFTED: u32 = 2;

/// Maximum of such doublings.
const DOUBLINGS: u32 = 4;

/// A move by more than this share never needs more than [`DRIFTED`] windows.
const FAR: f64 = 0.3;

/// Capacity of the workers relative to what the training takes: room for variation.
const HEADROOM: f64 = 1.2;

/// Share of the memory in use above which batches ahead are given up.
const PRESSURE: f64 = 0.9;

/// Share of the time that everything waits for memory, above which memory counts as short.
const STALLED: f64 = 0.1;

/// Share of the time that a quota keeps the process from the CPU, above which more workers gain nothing.
const THROTTLED: f64 = 0.1;

/// The settings that the tuner controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads, or worker processes.
    pub workers: usize,
    /// Maximum of batches in flight.
    pub depth: usize,
}

/// The settings to apply now, and the reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The settings to apply from now on.
    pub settings: Settings,
    /// The reason, also if nothing changes.
    pub reason: Reason,
}

/// Decides the settings after a window that ran with `settings`.
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
        advise(window, settings, history, bounds)
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

/// Jumps to the settings at which, by the costs of the stages, the training does not wait.
fn jump(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    history.phase = Phase::Watching(Seen::default());
    history.failed.clear();
    history.coarse.clear();
    (history.best, history.run) = (0.0, None);
    let reason = Reason::Costs {
        work_s: window.work_s,
        step_s: window.step_s,
        bottleneck: window.bottleneck(),
    };
    (wanted(window, settings, bounds), reason)
}

/// Returns the settings that the costs of the stages ask for, in closed form.
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

/// Reports once, after the first windows, what the costs of the stages ask for; changes nothing.
fn advise(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    if history.advised {
        return (settings, Reason::Steady);
    }
    let mut seen = match std::mem::take(&mut history.phase) {
        Phase::Watching(seen) => seen,
        _ => Seen::default(),
    };
    if seen.add(window).is_none() {
        history.phase = Phase::Watching(seen);
        return (settings, Reason::Measuring);
    }
    history.advised = true;
    let free = bounds.freed();
    let asked = free.clamp(wanted(window, settings, &free), settings, window);
    let reason = Reason::Advice {
        workers: (settings.workers, asked.workers),
        work_s: window.work_s,
        step_s: window.step_s,
        bottleneck: window.bottleneck(),
    };
    (settings, reason)
}

/// Keeps the settings until the load changes.
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

/// Gives memory back, whatever is on trial: batches ahead first, then workers.
fn retreat(
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    history.phase = Phase::Watching(Seen::default());
    history.failed.insert(Knob::More);
    history.failed.insert(Knob::Deeper);
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
