"""Findings on the level of steps over windows: drift, jumps, starvation, a machine that slows the training."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.drift import Drift, drift
from fastload.monitoring.detect.estimates import is_usually
from fastload.monitoring.detect.history import TEN_MINUTES, History
from fastload.monitoring.detect.jumps import Jump, jump
from fastload.monitoring.record import Finding
from fastload.units import duration

__all__ = ["Starvation", "drift_of", "level_findings", "starvation"]

Floats = NDArray[np.float64]
Levels = dict[str, Floats]

_DATA_SHARE = 0.8
_MACHINE = {
    "swap_in_bytes": (
        1e6,
        "memory is read back from swap",
        "Use less memory: fewer workers, or a memory_budget.",
    ),
    "throttled_share": (
        0.1,
        "a CPU quota holds the process back",
        "Raise the quota, or use fewer workers.",
    ),
    "memory_stall_share": (
        0.05,
        "all tasks wait for memory",
        "Use less memory: fewer workers, or a memory_budget.",
    ),
    "gpu_power_capped": (0.5, "the accelerator runs at its power limit", "Check its power limit."),
    "gpu_hardware_slowdown": (
        0.5,
        "the accelerator's hardware slows it down",
        "Check power and cooling.",
    ),
    "gpu_thermal_slowdown": (
        0.5,
        "the accelerator is too hot and slows down",
        "Check its cooling.",
    ),
}
"""By scalar: the value from which a window counts, the finding, the advice."""
_SLOWING = {
    "major_faults": "major page faults",
    "cache_refault_bytes": "files read again that the page cache had",
    "io_stall_share": "waiting for storage",
    "cpu_stall_share": "no CPU was free for some task",
    **{name: words for name, (_, words, _) in _MACHINE.items()},
}
"""Scalars that may explain slower steps if they rise with them."""
_STAGES = {
    "read": ("reading", "Keep the files on faster storage, or pack them into larger ones."),
    "decode": ("decoding and transforms", "Store the images at the size you train on."),
    "collate": (
        "collation",
        "Batch samples of similar length (max_tokens), or store them in one shape.",
    ),
    "interpreter": ("Python code in the loader", "See explain(loader) for what could be native."),
    "memory": ("memory", "Raise memory_budget, or use smaller batches."),
    "workers": ("workers", "Use more workers, or let num_workers choose."),
}
"""By stage: its name, and the advice that shortens the wait for it."""
_QUEUED_SHARE = 0.5
"""Share of the longer time of a step that the training thread must have waited for a CPU."""
_RECENT = 30
_LEAST_STARVED_SHARE = 0.1
_LEAST_SIDE = 7


def level_findings(history: History) -> list[Finding]:
    """Returns the findings on the levels of windows."""
    levels = history.levels(is_whole=False)
    if not len(levels["step"]):
        return []
    slower = _slower(history)
    said = "".join(finding.what for finding in slower)
    machine = [one for one in _slowed_by(history) if one.what not in said]
    return [*slower, *_starved(history), *machine]


def drift_of(history: History) -> Drift | None:
    """Returns the drift of the whole run, which may be none: see `Drift.statement`."""
    return drift(*history.levels(is_whole=True).values())


def _slower(history: History) -> list[Finding]:
    """Returns the finding that steps have become longer, by a jump or by drift, whichever fits better."""
    levels = history.levels(is_whole=False)
    found = _jump_of(levels)
    if found is not None:
        return [_jumped(history, levels, found)]
    whole = history.every(TEN_MINUTES, "drift", lambda: drift_of(history))
    recent = history.every(TEN_MINUTES, "recent drift", lambda: drift(*levels.values()))
    drifts = [one for one in (whole, recent) if one is not None and one.is_found]
    if not drifts:
        return []
    return [_drifted(history, max(drifts, key=lambda one: one.change / one.span_s))]


def _jump_of(levels: Levels) -> Jump | None:
    """Returns the jump of the durations, if those per sample jump as well, and a line does not fit better."""
    step_s, rows = levels["step_s"], levels["rows"]
    found = jump(step_s)
    if found is None or (
        rows.min() > 0 and rows.max() > rows.min() and jump(step_s / rows) is None
    ):
        return None
    at = np.arange(len(step_s))
    begin, end = max(0, found.index - 60), min(len(step_s), found.index + 60)
    near, at = step_s[begin:end], at[begin:end]
    middle = found.index - begin
    flat = np.where(at < found.index, np.median(near[:middle]), np.median(near[middle:]))
    line = np.polynomial.Polynomial.fit(at, near, 1)(at)
    return found if np.abs(near - flat).sum() < np.abs(near - line).sum() else None


def _jumped(history: History, levels: Levels, found: Jump) -> Finding:
    index = found.index
    before = slice(max(0, index - 60), index)
    added_s = found.after - found.before
    waited_s = float(levels["wait_s"][index:].mean() - levels["wait_s"][before].mean())
    owner = "data" if waited_s >= _DATA_SHARE * added_s else "own code"
    owner, beside = _explained(history, owner, added_s, float(levels["time_s"][index]))
    is_exact = math.isinf(found.z)
    deviations = "without noise" if is_exact else f"{found.z:.0f} standard deviations"
    return Finding(
        kind="jump",
        what=f"since step {levels['step'][index - 1] + 1:.0f} a step takes {found.change:.0%} longer, "
        f"{_WHERE[owner]}{beside}",
        evidence=f"{duration(found.before)} before, {duration(found.after)} after, {deviations}",
        since_step=int(levels["step"][index - 1]) + 1,
        since_s=float(levels["time_s"][index - 1]),
        cost_s=added_s,
        advice=_SLOWER_ADVICE[owner],
        owner=owner,
    )


def _drifted(history: History, found: Drift) -> Finding:
    middle_s = found.since_s + found.span_s / 2
    added_s = found.change * found.usual_s / 2
    owner, beside = _explained(history, found.owner, added_s, middle_s)
    per_hour = found.change / found.span_s * 3600
    return Finding(
        kind="drift",
        what=f"a step takes longer and longer, {per_hour:+.1%} an hour, {_WHERE[owner]}{beside}",
        evidence=found.statement().rstrip("."),
        since_step=found.since_step,
        since_s=found.since_s,
        cost_s=added_s,
        advice=_SLOWER_ADVICE[owner],
        owner=owner,
    )


_WHERE = {
    "data": "waiting for batches",
    "own code": "in the training's own code",
    "machine": "because the machine slows it",
}
_SLOWER_ADVICE = {
    "data": "Look at stats(): which stage takes longer than before.",
    "own code": "Look for state that grows with the steps: lists, graphs kept by metrics, longer sequences.",
    "machine": "Look at what else runs on this machine, and at its memory.",
}


def _explained(history: History, owner: str, added_s: float, since_s: float) -> tuple[str, str]:
    """Returns the machine as the owner if one of its figures has risen since; the figure ends a sentence.

    Args:
        history: The run.
        owner: Whose time it is otherwise.
        added_s: The time that a step takes longer.
        since_s: The monotonic clock from which on it does.
    """
    before, after = _sides(history, "queued_step_s", since_s)
    if len(before) and np.median(after) - np.median(before) >= _QUEUED_SHARE * added_s:
        return "machine", " (no CPU was free for the training thread)"
    for name, words in _SLOWING.items():
        before, after = _sides(history, name, since_s)
        if not len(before):
            continue
        high = float(np.quantile(before, 0.9))
        above = int((after > max(2 * high, _least(name))).sum())
        if above >= _DATA_SHARE * len(after):
            return "machine", f" ({words})"
    return owner, ""


def _sides(history: History, name: str, since_s: float) -> tuple[Floats, Floats]:
    """Returns a scalar in up to 60 windows before and after a moment; nothing where it is known in fewer than 7."""
    is_after, values = history.scalar("monotonic_s") >= since_s, history.scalar(name)
    before, after = values[~is_after], values[is_after]
    before, after = before[~np.isnan(before)][-60:], after[~np.isnan(after)][:60]
    if min(len(before), len(after)) < _LEAST_SIDE:
        return np.empty(0), np.empty(0)
    return before, after


def _least(name: str) -> float:
    """Returns from which value in a window a figure of the machine counts."""
    if name in _MACHINE:
        return _MACHINE[name][0]
    return 1e6 if name.endswith("_bytes") else 0.05 if name.endswith("_share") else 10.0


@dataclass(frozen=True, slots=True)
class Starvation:
    """The share of the time in which the training, or its accelerator, has no data."""

    share: float  # median of the newest windows, 0 to 1
    windows: int
    index: int  # position of the first window since which the share is as high
    is_starved: bool  # the accelerator had no work, rather than the training thread


def starvation(wait_share: Floats, starved_share: Floats) -> Starvation | None:
    """Finds that a tenth of the time or more is spent without data, in the newest 30 windows.

    While an accelerator has work queued, a wait of the training thread costs nothing. So where it is known how
    long the accelerator had none, that decides, whatever its utilisation says.

    Args:
        wait_share: Share of each window in which the training waited for batches, shape `(windows,)`.
        starved_share: Share of each window in which the accelerator had no work because of that; NaN if unknown.

    Returns:
        None where the median is below a tenth, or could be by chance (sign test).
    """
    is_starved = len(starved_share) > 0 and not bool(np.isnan(starved_share[-_RECENT:]).all())
    shares = starved_share if is_starved else wait_share
    known = np.flatnonzero(~np.isnan(shares))
    newest = shares[known[-_RECENT:]]
    if not is_usually(newest >= _LEAST_STARVED_SHARE):
        return None
    low = np.flatnonzero(shares[known] < _LEAST_STARVED_SHARE / 2)
    index = int(known[low[-1] + 1]) if len(low) and low[-1] + 1 < len(known) else int(known[0])
    return Starvation(float(np.median(newest)), len(newest), index, is_starved)


def _starved(history: History) -> list[Finding]:
    """Returns the finding that a tenth of the time is spent without data."""
    found = starvation(history.scalar("wait_share"), history.scalar("starved_share"))
    if found is None:
        return []
    shares = {name: _recent_median(history, f"stage_{name}_share") for name in _STAGES}
    name = max(shares, key=lambda one: shares[one])
    words, advice = _STAGES[name]
    mostly = f", mostly for {words}" if shares[name] > 0 else ""
    whom = "the accelerator has no work" if found.is_starved else "the training waits for batches"
    since_s = float(history.scalar("monotonic_s")[found.index])
    levels = history.levels(is_whole=False)
    at = min(int(np.searchsorted(levels["time_s"], since_s)), len(levels["step"]) - 1)
    return [
        Finding(
            kind="starvation",
            what=f"{whom} {found.share:.0%} of the time{mostly}",
            evidence=f"median of {found.windows} windows",
            since_step=int(levels["step"][at]),
            since_s=since_s,
            cost_s=found.share * float(np.nan_to_num(history.usual_s)),
            advice=advice if shares[name] > 0 else _STAGES["workers"][1],
            owner="data",
        )
    ]


def _slowed_by(history: History) -> list[Finding]:
    """Returns a finding for each figure of the machine that was high in nearly all recent windows."""
    found = []
    levels = history.levels(is_whole=False)
    for name, (least, words, advice) in _MACHINE.items():
        values = _recent(history, name)
        n, is_high = len(values), values >= least
        if not is_usually(is_high):
            continue
        at = max(0, len(levels["step"]) - n)
        share = float(np.median(values)) if name.endswith("_share") else 0.0
        found.append(
            Finding(
                kind="machine",
                what=words,
                evidence=f"{name} at {np.median(values):.3g}, in {is_high.sum()} of {n} windows",
                since_step=int(levels["step"][at]),
                since_s=float(levels["time_s"][at]),
                cost_s=share * float(np.nan_to_num(history.usual_s)),
                advice=advice,
                owner="machine",
            )
        )
    return found


def _recent_median(history: History, name: str) -> float:
    """Returns the median of a scalar in the newest windows; 0 if it is unknown."""
    values = _recent(history, name)
    return float(np.median(values)) if len(values) else 0.0


def _recent(history: History, name: str) -> Floats:
    """Returns a scalar in the newest windows, as far as it is known."""
    values = history.scalar(name)[-_RECENT:]
    return values[~np.isnan(values)]
