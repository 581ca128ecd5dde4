"""Recorded runs for the tests of the detectors: arrays of steps from a seed, cut into windows of 10 s."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect import Context, History, findings
from fastload.monitoring.record import Finding, Steps, Window

Floats = NDArray[np.float64]
Figures = Callable[[float, int], Mapping[str, float]]
"""Scalars of a window by its time in seconds and the number of its last step."""


@dataclass
class Recorded:
    """A run before it is cut: arrays of shape `(steps,)`, seconds."""

    own_s: Floats
    wait_s: Floats
    gc_s: Floats
    region_s: Floats
    rows: NDArray[np.int64]
    epoch: NDArray[np.int64]
    scalars: Figures = lambda _time_s, _step: {}
    context: Context = field(default_factory=Context)

    def windows(self, every_s: float = 10.0) -> Iterator[Window]:
        """Yields the windows."""
        end_s = 5000.0 + np.cumsum(self.own_s + self.wait_s)
        number = np.arange(len(end_s))
        at = 0
        borders = np.arange(5000.0 + every_s, end_s[-1] + every_s, every_s)
        for now_s, end in zip(borders, np.searchsorted(end_s, borders), strict=True):
            part = slice(at, int(end))
            steps = Steps(
                number[part],
                end_s[part],
                self.wait_s[part],
                self.own_s[part],
                self.gc_s[part],
                self.region_s[part],
                self.rows[part],
                self.epoch[part],
                number[part],
            )
            at = int(end)
            whole_s = max(float((steps.wait_s + steps.own_s).sum()), 1e-9)
            scalars = {"wait_share": float(steps.wait_s.sum()) / whole_s} if len(steps) else {}
            scalars |= self.scalars(now_s - 5000.0, at)
            yield Window(at - 1, 1.7e9 + now_s, now_s, 0, scalars, steps)

    def replay(self) -> tuple[History, list[Finding], dict[tuple[str, str], Finding]]:
        """Returns the history, the findings at the end, and the first finding of each kind and owner."""
        history, now, ever = History(), list[Finding](), dict[tuple[str, str], Finding]()
        for window in self.windows():
            history.add(window)
            now = findings(history, self.context)
            for finding in now:
                ever.setdefault((finding.kind, finding.owner), finding)
        return history, now, ever

    def kinds(self) -> set[tuple[str, str]]:
        """Returns kind and owner of all findings of the whole run."""
        return set(self.replay()[2])


def healthy(
    seed: int,
    steps: int = 7200,
    *,
    step_s: float = 0.5,
    sigma: float = 0.1,
    rho: float = 0.0,
    epoch_steps: int = 2000,
    wait_part: float = 0.01,
    lengths: float = 0.0,
) -> Recorded:
    """Returns a run without trouble: log-normal AR(1) steps, a warm-up, slow first steps of epochs.

    Args:
        seed: Of its random numbers.
        steps: How many.
        step_s: Median duration.
        sigma: Standard deviation of the logarithm of a duration.
        rho: Autocorrelation of neighbours.
        epoch_steps: Steps of an epoch.
        wait_part: Median wait as a fraction of the duration.
        lengths: Standard deviation of the logarithm of the samples per batch, to which durations are proportional.
    """
    random = np.random.default_rng(seed)
    number = np.arange(steps)
    epoch, position = np.divmod(number, epoch_steps)
    own_s = step_s * np.exp(sigma * ar1(random, steps, rho))
    rows = np.full(steps, 64)
    if lengths:
        rows = np.maximum(1, np.round(64 * np.exp(lengths * random.standard_normal(steps)))).astype(
            int
        )
        own_s *= rows / 64
    own_s *= 1 + 2 * np.exp(-number / 40)
    wait_s = wait_part * step_s * np.exp(0.5 * random.standard_normal(steps))
    wait_s[position == 0] += 8 * step_s
    wait_s[position == 1] += 2 * step_s
    zeros = np.zeros(steps)
    return Recorded(own_s, wait_s, zeros, zeros.copy(), rows, epoch, _memory(seed))


def fast(seed: int, hours: float = 1.0, **keywords: float) -> Recorded:
    """Returns a healthy run of steps of 50 ms."""
    return healthy(seed, int(hours * 72_000), step_s=0.05, **keywords)


def ar1(random: np.random.Generator, steps: int, rho: float) -> Floats:
    """Returns AR(1) noise of variance 1."""
    noise = random.standard_normal(steps)
    if rho == 0.0:
        return noise
    # blocks of a moving average that has decayed to 1e-8 at its end
    length = int(np.ceil(np.log(1e-8) / np.log(rho)))
    kernel = rho ** np.arange(length) * np.sqrt(1 - rho**2)
    size = 1 << int(np.ceil(np.log2(steps + length)))
    spectrum = np.fft.rfft(noise, size) * np.fft.rfft(kernel, size)
    return np.fft.irfft(spectrum, size)[:steps]


def with_pauses(run: Recorded, at: Floats, seconds: float, *, of: str = "own_s") -> Recorded:
    """Returns the run with a pause in some steps."""
    column = getattr(run, of).copy()
    column[np.asarray(at, int)] += seconds
    changed = dataclasses.replace(run, **{of: column})
    if of in ("gc_s", "region_s"):  # parts of a step's own time
        changed.own_s = run.own_s + column - getattr(run, of)
    return changed


def _memory(seed: int) -> Figures:
    """Returns figures of memory without a leak: noise, and an approach to a plateau."""
    random = np.random.default_rng(seed + 1_000_003)

    def scalars(time_s: float, step: int) -> Mapping[str, float]:
        grown = 3e8 * (1 - np.exp(-time_s / 300))
        return {
            "rss_bytes": 2e9 + grown + 2**21 * abs(random.standard_normal()),
            "free_bytes": 3e10,
            "fds": 40.0 + random.integers(0, 3),
            "fd_limit": 1024.0,
            "threads": 12.0,
            "throttled_share": 0.0,
            "swap_in_bytes": 0.0,
            "memory_stall_share": 0.0,
        }

    return scalars
