"""`Loading`: what a loader did in a window, from its own counters: bytes, and what its batches waited for; its sizes.

The counters of an iterator begin at 0. Those of the iterator before are read once more when a new one starts, so
that no time between two windows is lost.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch.utils.data import IterableDataset

from fastload.collate import PackCollate
from fastload.draws.sampler import picks_batches, resumable
from fastload.sizes import length_of

__all__ = ["STAGES", "Loading", "settings_of", "sizes_of", "steps_of"]

_FALLBACKS = ("pillow_fallback_s", "torchvision_fallback_s")
_NATIVE = {
    "begin": "collate",
    "read": "read",
    "decode": "decode",
    "transform": "decode",
    "collate": "collate",
}
_BOTTLENECKS = {"reading": "read", "the interpreter": "interpreter", "memory": "memory"}
_SUMS = (*_FALLBACKS, "read_bytes", "batch_bytes", "batches", "consumer_batches")
_LEVELS = (
    "workers",
    "depth",
    "interpreter_share",
    "arena_bytes",
    "worker_bytes",
    "ahead_bytes",
    "held_tasks",
    "interpreter_wait_ms",
)
_LISTED = (list, tuple, range)  # samplers whose length is that of a list
_ENDLESS = 1 << 62  # samples of an epoch whose length is not known
STAGES = ("read", "decode", "collate", "interpreter", "memory", "workers")


class Loading:
    """Turns the counters of a loader into figures of windows.

    Attributes:
        is_native: True if native code made the batches of the last window.
    """

    def __init__(self) -> None:
        self.is_native = False
        self._counters: Callable[[], Mapping[str, Any]] | None = None
        self._before: dict[str, float] = {}
        self._passed = dict.fromkeys(_SUMS, 0.0)

    def begin(self, loader: Any) -> None:
        """Takes the counters of an iterator that has just been started, after the last ones of the one before."""
        self.count()
        if self._counters is not loader._counters:
            self._counters, self._before = loader._counters, {}

    def count(self) -> None:
        """Adds the iterator's counts since the last reading."""
        counters = _numbers(self._counters)
        for name, now in counters.items():
            before = self._before.get(name, 0.0)
            self._passed[name] += now - before if now >= before else now  # a new epoch began at 0
        self._before |= counters

    def read(
        self,
        loader: Any,
        elapsed_s: float,
        waits: Mapping[str, float] | None = None,
        wait_s: float = 0.0,
    ) -> dict[str, float]:
        """Returns the figures since the last call.

        Of each stage, `stage_<name>_share` is the fraction of the waiting time that is ascribed to it: by what native
        threads did for the batches that were waited for; `interpreter` for files that Python decodes and batches that
        the training thread makes; else by the tuner's bottleneck, where `workers` are the workers' Python code.

        Args:
            loader: The loader.
            elapsed_s: Seconds since then.
            waits: By the name of a native stage, the seconds in which steps waited for it.
            wait_s: Seconds that the steps waited, in all.
        """
        stats = loader.stats()
        self.is_native = "read_s" in stats
        self.count()
        passed, self._passed = self._passed, dict.fromkeys(_SUMS, 0.0)
        figures = {name: float(stats[name]) for name in _LEVELS if name in stats}
        figures.setdefault("workers", float(loader.num_workers))
        figures.setdefault("depth", float((loader.prefetch_factor or 0) * loader.num_workers))
        for name in ("read_bytes", "batch_bytes"):
            if name in stats:
                figures[f"{name}_per_s"] = passed[name] / elapsed_s
        seconds = _waited_for(stats, passed, waits or {}, wait_s, is_inline=loader.num_workers == 0)
        whole_s = max(sum(seconds.values()), 1e-12)
        shares = {f"stage_{stage}_share": each / whole_s for stage, each in seconds.items()}
        return figures | shares


def settings_of(loader: Any) -> dict[str, Any]:
    """Returns the settings in effect, for the head of a report: plain values."""
    stats = loader.stats()
    names = ("batch_size", "num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
    settings: dict[str, Any] = {name: getattr(loader, name, None) for name in names}
    settings = {
        name: int(value) if type(value) not in (bool, type(None)) else value
        for name, value in settings.items()
    }
    settings["dataset"] = type(loader.dataset).__qualname__
    return settings | {name: stats[name] for name in ("workers", "depth") if name in stats}


def sizes_of(loader: Any, iterator: Any) -> tuple[int | None, int]:
    """Returns the samples of a full batch, and of an epoch that has just been started, for `Recorder.begin`."""
    if not loader._auto_collation:
        return 0, _ENDLESS  # a sample may be a batch that the dataset has made
    if loader.batch_size is None:
        return 0 if isinstance(loader.collate_fn, PackCollate) else None, _ENDLESS
    if isinstance(loader.dataset, IterableDataset):
        return loader.batch_size, _ENDLESS
    samples = length_of(loader.sampler) if _has_known_length(loader) else None
    if samples is None:
        return loader.batch_size, _ENDLESS
    return loader.batch_size, samples - iterator._num_yielded * loader.batch_size


def steps_of(loader: Any) -> int:
    """Returns the batches of an epoch; 0 if unknown."""
    return (length_of(loader) or 0) if _has_known_length(loader) else 0


def _has_known_length(loader: Any) -> bool:
    """Returns true unless a sampler is the user's: its `__len__` may draw or raise, and torch does not call it."""
    sampler, is_batched = loader._index_sampler, loader._auto_collation
    if resumable(sampler, batched=is_batched) is not None or type(sampler) in _LISTED:
        return True
    return is_batched and picks_batches(sampler) and type(sampler.sampler) in _LISTED


def _numbers(counters: Callable[[], Mapping[str, Any]] | None) -> Mapping[str, float]:
    """Returns the sums among the counters; empty if the iterator is gone or another process's."""
    if counters is None:
        return {}
    try:
        found = counters()
    except RuntimeError:
        return {}
    return {name: float(found[name]) for name in _SUMS if name in found}


def _waited_for(
    stats: Mapping[str, Any],
    passed: Mapping[str, float],
    waits: Mapping[str, float],
    wait_s: float,
    *,
    is_inline: bool,
) -> dict[str, float]:
    """Returns how much of the waiting is ascribed to each stage, in a unit of its own; empty if that is not known."""
    seconds = dict.fromkeys(STAGES, 0.0)
    bottleneck = stats.get("bottleneck")
    if bottleneck == "memory":
        seconds["memory"] = 1.0
    elif "read_s" in stats:
        for name, stage in _NATIVE.items():
            seconds[stage] += waits.get(name, 0.0)
        natively_s = sum(waits.values())
        if natively_s > 0:  # otherwise it is not known what was waited for
            in_python_s = sum(passed[name] for name in _FALLBACKS)
            seconds["interpreter"] = max(0.0, min(in_python_s, wait_s - natively_s))
    elif passed["batches"]:
        here = 1.0 if is_inline else passed["consumer_batches"] / passed["batches"]
        seconds["interpreter"] = here
        seconds[_BOTTLENECKS.get(str(bottleneck), "workers")] += 1.0 - here
    return seconds if any(seconds.values()) else {}
