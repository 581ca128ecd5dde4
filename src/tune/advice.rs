//! The settings that the tuner would choose where the user has fixed them.

use super::history::{Phase, Seen};
use super::{Bounds, History, Reason, Settings, Window, wanted};

/// Reports once, after the first windows, what the costs of the stages ask for; changes nothing.
pub(super) fn advise(
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
