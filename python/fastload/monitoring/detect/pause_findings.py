"""Findings on single steps: periods, stalls, garbage collection, named regions, the borders of epochs."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.history import TEN_MINUTES, Context, History
from fastload.monitoring.detect.pauses import (
    LONG_S,
    LONG_STEPS,
    Period,
    dense_period,
    stall_periods,
)
from fastload.monitoring.record import Finding
from fastload.units import duration

__all__ = ["pause_findings"]

Floats = NDArray[np.float64]

_LEAST_COST = 0.003
"""Share of the time below which a period is not reported."""
_LEAST_DENSE_COST = 0.01
_LEAST_LATE_S = 1e-3
"""The loader writes to a worker once for several batches, which takes a few tenths of a millisecond at one of them."""
_LEAST_SHARE = 0.02
"""Share of the time from which irregular stalls and regions are reported."""
_LEAST_BORDER_SHARE = 0.05
_LEAST_GC_SHARE = 0.05
_LEAST_OWN_PAUSE = 2.0
_LEAST_SHORT_PAUSE = 5.0
_SHORT_PERIOD = 16
"""Gradient accumulation makes every n-th step longer: a pause in steps this close must be longer to be reported."""
_RECENT_PERIODS = 3.0
_FLUSH_S = 120.0
_FLUSH_TOLERANCE = 0.03
_EVALUATION = ("eval", "valid", "test")
_LEAST_STEPS = 64
_LEAST_STALLS = 3
_SHORTEST_STOP_S = 0.2
_MOST_P = 1e-6
"""Chance that stalls without a period show one, in one look."""
_COSTLY = (0.5, 0.8, 1.0)
"""Shares of the time lost that the stalls cost which are searched for a period."""
_LEAST_IRREGULAR = 8
"""Fewer may still turn out to have a period."""

_ADVICE = {
    "data": "Make these batches cheaper, or let the loader work further ahead (prefetch_factor).",
    "own code": "Look at what the training does there.",
    "garbage collection": "Do not call gc.collect() in the loop; call gc.freeze() after the set-up, or gc.disable() and collect at the end of an epoch.",
    "checkpoint": "Save less often, or in another thread or process.",
    "machine": "Look at what else runs on this machine, or use fewer workers.",
    "unknown": "Look for signals and debuggers, and for extensions that wait without releasing the interpreter.",
    "sink": "Log less often, or from another thread; SummaryWriter flushes every 120 s (flush_secs).",
}
_BLAME = {
    "data": "the batches were late",
    "own code": "the training's own code",
    "garbage collection": "garbage collection",
    "machine": "no CPU was free for the training thread",
    "unknown": "no Python ran meanwhile",
    "sink": "metrics were logged",
}


def pause_findings(history: History, context: Context) -> list[Finding]:
    """Returns the findings on single steps."""
    steps = history.steps()
    n = len(steps["number"])
    if n < _LEAST_STEPS:
        return []
    whole_s = float((steps["wait_s"] + steps["own_s"]).sum())
    found, is_periodic = _periods(history, context, whole_s / n)
    dense = history.every(TEN_MINUTES, "dense", lambda: _dense_period(history, context))
    if dense is not None:
        is_periodic |= history.stalls()["number"] % dense.steps == dense.phase
        if not found:
            found += _late_batches(steps, dense, context)
    found += _stalls(history, context, is_periodic)
    found += _regions(context, steps, whole_s)
    if not any(one.owner == "garbage collection" for one in found):
        found += _collection(steps, whole_s)
    found += _borders(context, steps, whole_s)
    return found


def _periods(
    history: History, context: Context, mean_s: float
) -> tuple[list[Finding], NDArray[np.bool_]]:
    """Returns the findings on periodic stalls, and which stalls have a period."""
    stalls = history.stalls()
    number, usual_s = stalls["number"], history.usual_s
    is_periodic = np.zeros(len(number), bool)
    found = []
    for hits, period in _of_costly(stalls, usual_s, _likely(context)):
        is_periodic[hits] = True
        every = period.steps or period.seconds / mean_s
        last = float(history.steps()["number"][-1])
        cost_s = period.excess_s / every
        if last - number[hits[-1]] > _RECENT_PERIODS * every or cost_s < _LEAST_COST * mean_s:
            continue
        owner, place = _cause(
            history, context, {name: column[hits] for name, column in stalls.items()}
        )
        pause = period.excess_s / usual_s
        least = _LEAST_OWN_PAUSE if every > _SHORT_PERIOD else _LEAST_SHORT_PAUSE
        if owner == "own code" and pause < least:
            continue
        is_flush = abs(period.seconds - _FLUSH_S) <= _FLUSH_TOLERANCE * _FLUSH_S
        if owner == "own code" and not place and is_flush:
            owner, place = "sink", ", as TensorBoard's writer flushes"
        if owner == "data":
            place = _loader_period(period.steps, context)
        when = f"{period.steps} steps" if period.steps else f"{period.seconds:.0f} s"
        found.append(
            Finding(
                kind="period",
                what=f"every {when} {_takes(owner, period.excess_s)}{place}",
                evidence=f"{period.count} times, {pause:.1f} times a usual step of {duration(usual_s)}, "
                f"{period.trend}; probability by chance {period.p:.0e}",
                since_step=int(number[hits[0]]),
                since_s=float(stalls["end_s"][hits[0]]),
                cost_s=cost_s,
                advice=_ADVICE[owner],
                owner=owner,
            )
        )
    return found, is_periodic


def _costly(excess_s: Floats, share: float = 0.5) -> NDArray[np.bool_]:
    """Returns which stalls are at least half as long as the shortest of the longest that cost this share of all."""
    if not len(excess_s) or share >= 1:
        return np.ones(len(excess_s), bool)
    longest_first = np.sort(excess_s)[::-1]
    shortest = np.searchsorted(np.cumsum(longest_first), share * longest_first.sum())
    return np.asarray(excess_s >= longest_first[shortest] / 2)


def _of_costly(
    stalls: dict[str, Floats], usual_s: float, likely: list[int]
) -> list[tuple[NDArray[np.int64], Period]]:
    """Returns the periods of stalls, with the positions of their stalls.

    A busy machine adds many short stalls, among which the period of long ones would not be seen. So the longest are
    tried first: those that cost half of the time lost, and all that are at least half as long; then those that cost
    80 %; then all.
    """
    for share in _COSTLY:
        costly = np.flatnonzero(_costly(stalls["excess_s"], share))
        periods = stall_periods(
            stalls["number"][costly],
            stalls["end_s"][costly],
            stalls["excess_s"][costly],
            usual_s,
            likely,
            _MOST_P / len(_COSTLY),
        )
        if periods:
            return [(costly[period.is_hit], period) for period in periods]
    return []


def _stalls(history: History, context: Context, is_periodic: NDArray[np.bool_]) -> list[Finding]:
    """Returns the finding on stalls without a period, by the owner that costs most."""
    steps, stalls = history.steps(), history.stalls()
    is_meant = ~is_periodic & (stalls["number"] >= steps["number"][0])
    single = {name: column[is_meant] for name, column in stalls.items()}
    excess = single["excess_s"]
    if len(excess) == 0:
        return []
    span_s = float(steps["end_s"][-1] - min(steps["end_s"][0], single["end_s"][0]))
    lost_s, longest_s = float(excess.sum()), float(excess.max())
    is_long = longest_s >= max(LONG_S, LONG_STEPS * history.usual_s)
    times = int(_costly(excess).sum())
    if not is_long and (times < _LEAST_IRREGULAR or lost_s < _LEAST_SHARE * span_s):
        return []
    owner, place = _cause(history, context, single)
    is_one = len(excess) == 1
    many = f"step {single['number'][0]:.0f}" if is_one else f"{len(excess)} steps"
    took = f"took {'' if is_one else 'up to '}{duration(longest_s)} longer"
    return [
        Finding(
            kind="stall",
            what=f"{many} {took}: {_BLAME[owner]}{place}",
            evidence=f"{duration(lost_s)} in all, {lost_s / max(span_s, lost_s):.1%} of the time; a usual step "
            f"takes {duration(history.usual_s)}",
            since_step=int(single["number"][0]),
            since_s=float(single["end_s"][0]),
            cost_s=lost_s / len(steps["number"]),
            advice=_ADVICE[owner],
            owner=owner,
        )
    ]


def _regions(context: Context, steps: dict[str, Floats], whole_s: float) -> list[Finding]:
    """Returns a finding for each named region that takes 2 % of the time, unless it evaluates the model."""
    found = []
    for name, ran in context.regions.items():
        lowered = name.lower()
        if any(word in lowered for word in _EVALUATION):
            continue
        numbers, seconds = np.array(ran, np.float64).reshape(-1, 2).T
        is_in = np.isin(steps["number"], numbers)
        times = int(is_in.sum())
        lost_s = float(seconds[np.isin(numbers, steps["number"])].sum())
        if times < _LEAST_STALLS or lost_s < _LEAST_SHARE * whole_s:
            continue
        at = steps["number"][is_in]
        gap = int(np.median(np.diff(at)))
        is_saving = any(word in lowered for word in ("checkpoint", "save", "saving"))
        owner = "checkpoint" if is_saving else "sink" if "log" in lowered else "own code"
        found.append(
            Finding(
                kind="period",
                what=f"every {gap} steps the region {name!r} takes {duration(lost_s / times)}",
                evidence=f"{times} times, {lost_s / whole_s:.1%} of the time",
                since_step=int(at[0]),
                since_s=float(steps["end_s"][is_in][0]),
                cost_s=lost_s / len(steps["number"]),
                advice=_ADVICE[owner],
                owner=owner,
            )
        )
    return found


def _collection(steps: dict[str, Floats], whole_s: float) -> list[Finding]:
    """Returns the finding that garbage collection takes 5 % of the time or more, whenever it runs."""
    lost_s = float(steps["gc_s"].sum())
    is_in = steps["gc_s"] > 0
    if lost_s < _LEAST_GC_SHARE * whole_s or is_in.sum() < _LEAST_IRREGULAR:
        return []
    return [
        Finding(
            kind="stall",
            what=f"garbage collection takes {lost_s / whole_s:.0%} of the time",
            evidence=f"{int(is_in.sum())} of {len(is_in)} steps, {duration(lost_s)}",
            since_step=int(steps["number"][is_in][0]),
            since_s=float(steps["end_s"][is_in][0]),
            cost_s=lost_s / len(is_in),
            advice=_ADVICE["garbage collection"],
            owner="garbage collection",
        )
    ]


def _borders(context: Context, steps: dict[str, Floats], whole_s: float) -> list[Finding]:
    """Returns the finding that the first batches of epochs are waited for 5 % of the time or more."""
    border = steps["border"] > 0
    starts = int((np.diff(steps["epoch"]) > 0).sum())
    if starts < 2 or border.all():
        return []
    excess = steps["wait_s"][border] - float(np.median(steps["wait_s"][~border]))
    lost_s = float(excess.sum())
    if lost_s < _LEAST_BORDER_SHARE * whole_s:
        return []
    at = np.flatnonzero(border)[0]
    return [
        Finding(
            kind="period",
            what=f"at each start of an epoch the first batches are late by {duration(lost_s / starts)}",
            evidence=f"{starts} epochs, {lost_s / whole_s:.1%} of the time",
            since_step=int(steps["number"][at]),
            since_s=float(steps["end_s"][at]),
            cost_s=lost_s / len(border),
            advice="Make epochs longer."
            if context.is_native
            else "Keep the workers (persistent_workers=True), or make epochs longer.",
            owner="data",
        )
    ]


def _dense_period(history: History, context: Context) -> Period | None:
    steps = history.steps()
    usable = steps["border"] == 0
    return dense_period(steps["number"], steps["step_s"], usable, _likely(context))


def _late_batches(steps: dict[str, Floats], period: Period, context: Context) -> list[Finding]:
    """Returns the finding that some of the batches are late, by less than a stall."""
    usable = steps["border"] == 0
    is_hit = usable & (steps["number"] % period.steps == period.phase)
    waited_s = float(steps["wait_s"][is_hit].mean() - steps["wait_s"][usable & ~is_hit].mean())
    cost_s = period.excess_s / period.steps
    mean_s = float(steps["step_s"].mean())
    is_small = period.excess_s < _LEAST_LATE_S or cost_s < _LEAST_DENSE_COST * mean_s
    if is_small or waited_s < period.excess_s / 2:
        return []
    first = int(is_hit.argmax())
    return [
        Finding(
            kind="period",
            what=f"every {period.steps} steps {_takes('data', period.excess_s)}"
            + _loader_period(period.steps, context),
            evidence=f"mean of {period.count} times, {period.trend}; a mean step takes {duration(mean_s)}; "
            f"probability by chance {period.p:.0e}",
            since_step=int(steps["number"][first]),
            since_s=float(steps["end_s"][first]),
            cost_s=cost_s,
            advice=_ADVICE["data"],
            owner="data",
        )
    ]


def _cause(history: History, context: Context, stalls: dict[str, Floats]) -> tuple[str, str]:
    """Returns the owner of most of the excess of stalls, and the place of it for the end of a sentence."""
    whole_s = float(stalls["excess_s"].sum())
    if float(stalls["gc_s"].sum()) >= whole_s / 2:
        return "garbage collection", ""
    is_waiting = float(stalls["wait_s"].sum()) >= whole_s / 2
    is_long = float(np.median(stalls["excess_s"])) >= _SHORTEST_STOP_S
    # the window that a stop has delayed is made before the step of the stop ends
    if is_long and _seconds(history, "stopped_s", stalls["end_s"], 2) >= whole_s / 2:
        return (
            "unknown",
            ": the process was stopped, or native code waited and held the interpreter",
        )
    seen, logged = Counter[str](), Counter[str]()
    for step, excess_s in zip(stalls["number"].tolist(), stalls["excess_s"].tolist(), strict=True):
        if step in context.functions:
            function, tracker = context.functions[step]
            seen[function] += excess_s
            logged[tracker] += excess_s
    if not is_waiting and seen.total() >= whole_s / 2:
        place, tracker = f", in {_most(seen)}", _most(logged)
        return ("sink", f"{place}, which calls {tracker}") if tracker else ("own code", place)
    if _seconds(history, "queued_s", stalls["end_s"]) >= whole_s / 2:
        return "machine", ""
    if is_waiting:
        return "data", ""
    return "own code", f", in {_most(seen)}" if seen else ""


def _most(seconds: Counter[str]) -> str:
    """Returns the name with the most seconds."""
    return seconds.most_common(1)[0][0]


def _seconds(history: History, name: str, end_s: Floats, windows: int = 1) -> float:
    """Returns the sum of a figure in seconds over the windows in which these steps ended, or so many up to there."""
    seconds, ends = history.scalar(name), history.scalar("monotonic_s")
    last = np.searchsorted(ends, end_s)
    at = np.unique(last[:, None] - np.arange(windows))
    return float(np.nansum(seconds[at[(at >= 0) & (at < len(seconds))]]))


def _takes(owner: str, seconds: float) -> str:
    """Returns the middle of a sentence on the cause of a pause."""
    if owner == "data":
        return f"the batch is late by {duration(seconds)}"
    if owner == "garbage collection":
        return f"garbage collection takes {duration(seconds)}"
    if owner == "machine":
        return f"no CPU is free for the training thread for {duration(seconds)}"
    return f"the training pauses for {duration(seconds)}"


def _loader_period(steps: int, context: Context) -> str:
    """Returns which setting of the loader has this period; empty if none has."""
    for name, value in (
        ("the number of workers", context.workers),
        ("the batches that the loader is ahead", context.prefetch),
        ("an epoch", context.epoch_steps),
    ):
        if steps and steps == value:
            return f": the period is {name}"
    return ""


def _likely(context: Context) -> list[int]:
    """Returns the periods that the settings of a loader suggest."""
    values = (context.workers, context.prefetch, context.epoch_steps)
    return sorted({value for value in values if value > 1})
