//! Tries one change at a time, and keeps it only for a measured gain.

use super::history::{Knob, Level, Phase, Seen, Trial};
use super::{Bounds, History, Reason, Settings, THROTTLED, WAITS, Window};

/// The gain in samples per second that justifies another worker, or memory.
const WORTH: f64 = 1.02;

/// A loss in samples per second up to this does not count.
const SAME: f64 = 0.985;

/// Factor by which a training step may become longer for a gain of the loader.
const SLOWER: f64 = 1.03;

/// A longer step does not count below this share of the time between two batches.
const FELT: f64 = 0.03;

/// The minimum growth of workers, as a share.
const GROWTH: f64 = 0.12;

/// Collects windows at the current settings; then tries the most promising change, or rests.
pub(super) fn begin(
    mut seen: Seen,
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    let Some(level) = seen.add(window) else {
        history.phase = Phase::Watching(seen);
        return (settings, Reason::Measuring);
    };
    history.best = history.best.max(level.rate);
    next(level, window, settings, history, bounds)
}

/// Collects windows of a change; then keeps it or undoes it.
pub(super) fn judge(
    mut trial: Trial,
    window: &Window,
    settings: Settings,
    history: &mut History,
) -> (Settings, Reason) {
    let (knob, was) = (trial.knob, trial.was);
    let adds = matches!(knob, Knob::More | Knob::Deeper);
    let kept = if adds {
        WORTH * was.rate
    } else {
        SAME * history.best
    };
    let Some(level) = trial.seen.judge(window, was.rate, kept) else {
        history.phase = Phase::Trying(trial);
        return (settings, Reason::Measuring);
    };
    let gained = level.rate >= kept;
    let slowed = adds && slows(&was, &level);
    if gained && !slowed {
        history.best = history.best.max(level.rate);
        history.run = match history.run {
            Some((same, times)) if same == knob => Some((knob, times + 1)),
            _ => Some((knob, 1)),
        };
        // The opposite direction comes from there; a value in between may be better still.
        if settings.workers.abs_diff(trial.before.workers) > 1
            && !history.coarse.contains(&knob.opposite())
        {
            history.coarse.insert(knob.opposite());
        } else {
            history.failed.insert(knob.opposite());
        }
        history.phase = Phase::Watching(Seen::of(level));
        return (settings, Reason::Kept(knob, was, level));
    }
    history.run = None;
    let stride = settings.workers.abs_diff(trial.before.workers);
    let linear = adds || level.rate >= SAME.powf(stride as f64) * history.best;
    if stride > 1 && linear && !history.coarse.contains(&knob) {
        history.coarse.insert(knob);
    } else {
        history.failed.insert(knob);
    }
    history.phase = Phase::Watching(Seen::of(was));
    let reason = if gained {
        Reason::SlowedStep(knob, was, level)
    } else {
        Reason::NoGain(knob, was, level)
    };
    (trial.before, reason)
}

/// Returns true if a change made the training's own step noticeably longer, and by more than it gained.
fn slows(was: &Level, is: &Level) -> bool {
    let longer = is.step_s / was.step_s.max(f64::MIN_POSITIVE);
    let felt = is.step_s - was.step_s > FELT * was.batch_s();
    longer > SLOWER && felt && longer > is.rate / was.rate.max(f64::MIN_POSITIVE)
}

/// Tries the most promising change; rests if there is none.
fn next(
    level: Level,
    window: &Window,
    settings: Settings,
    history: &mut History,
    bounds: &Bounds,
) -> (Settings, Reason) {
    let waits = level.waiting >= WAITS;
    let order = [Knob::More, Knob::Deeper, Knob::Fewer, Knob::Shallower];
    let found = order.into_iter().find_map(|knob| {
        let next = changed(knob, waits, window, settings, history, bounds)?;
        (next != settings && !history.failed.contains(&knob)).then_some((knob, next))
    });
    let Some((knob, next)) = found else {
        history.settled_on(settings);
        history.phase = Phase::Resting {
            was: level,
            off: 0,
            windows: 0,
        };
        return (settings, Reason::Settled(window.bottleneck()));
    };
    history.phase = Phase::Trying(Trial {
        knob,
        before: settings,
        was: level,
        seen: Seen::default(),
    });
    (next, Reason::Trying(knob, next))
}

/// Returns the changed settings, if there is a reason to turn the knob.
fn changed(
    knob: Knob,
    waits: bool,
    window: &Window,
    settings: Settings,
    history: &History,
    bounds: &Bounds,
) -> Option<Settings> {
    let Settings { workers, depth } = settings;
    let with = |workers: usize| Settings {
        workers,
        depth: bounds.scaled(settings, workers),
    };
    let next = match knob {
        Knob::More => {
            let most = bounds.promising_workers(window).max(workers);
            with((workers + stride(knob, workers, history)).min(most))
        }
        Knob::Fewer => {
            let stride = stride(knob, workers, history);
            with(workers.saturating_sub(stride).max(1))
        }
        Knob::Deeper => Settings {
            workers,
            depth: (depth + depth.div_ceil(2)).min(bounds.deepest(window)),
        },
        Knob::Shallower => Settings {
            workers,
            depth: depth.saturating_sub(spare(window)),
        },
    };
    let reasonable = match knob {
        Knob::More => waits && window.machine.throttled <= THROTTLED,
        Knob::Deeper => waits && window.least_ready < 1.0 && window.most_ready > 1.0,
        Knob::Fewer => !waits || may_do_with(next.workers, window),
        Knob::Shallower => !waits && spare(window) > 0,
    };
    reasonable.then(|| bounds.clamp(next, settings, window))
}

/// Returns true if the cores would make as much with fewer workers, judged by the CPU share of a batch.
fn may_do_with(workers: usize, window: &Window) -> bool {
    let batches = window.batches / window.elapsed_s.max(f64::MIN_POSITIVE);
    workers as f64 >= batches * window.cpu_s
}

/// Returns how many workers one trial adds or removes: more the longer it goes in one direction, half as many
/// where several at once gained nothing.
#[allow(clippy::cast_sign_loss)] // not negative
fn stride(knob: Knob, workers: usize, history: &History) -> usize {
    let one = (GROWTH * workers as f64).ceil().max(1.0) as usize;
    if history.coarse.contains(&knob) {
        return one.div_ceil(2);
    }
    match history.run {
        Some((same, times)) if same == knob => one << times.min(4),
        _ => one,
    }
}

/// Returns the number of batches that were always ready when the training came for one, less one.
#[allow(clippy::cast_sign_loss)] // not negative
fn spare(window: &Window) -> usize {
    (window.least_ready as usize).saturating_sub(1)
}
