"""What a round does: settings drawn from the seed and the number of the round, and nothing else."""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from tools.soak.sources import SAMPLES, Source

LANES = ("native", "auto", "chosen", "threads", "inline")
"""Native threads; Python workers under AUTO; a chosen number of processes or threads; none."""

_WEIGHTS = (5, 3, 2, 2, 1)


@dataclass(frozen=True)
class Round:
    """The settings of a round.

    Attributes:
        lane: One of `LANES`.
        source: Name of its samples.
        order: How they are sampled.
        collation: `"default"`, `"pad"` or `"pack"`.
        seed: Of the generators, at each epoch.
        workers: How many.
        other_workers: How many the second loader has, where draws are compared.
        leave: After how many batches an epoch is left; None for none.
        fork: After how many batches the process forks.
        bad: Samples that raise.
        resize: Whether the number of workers changes while an epoch runs.
        hold: How many batches are held, and looked at again when they are let go of.
        beside: A second loader that runs in turns with this one.
        torch: Further arguments of both loaders.
        own: Further arguments of ours.
    """

    lane: str
    source: str
    order: str
    collation: str
    seed: int
    epochs: int
    batch_size: int | None
    workers: int
    other_workers: int
    persistent: bool
    leave: int | None = None
    fork: int | None = None
    bad: frozenset[int] = frozenset()
    resize: bool = False
    hold: int = 0
    beside: "Round | None" = None
    torch: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Returns the settings that are not the usual ones."""
        said = asdict(self) | {
            "bad": sorted(self.bad),
            "beside": self.beside and f"({self.beside})",
        }
        return ", ".join(
            f"{name}={value}"
            for name, value in said.items()
            if value not in (None, [], {}, False, 0)
        )


def draw(seed: int, number: int, sources: Mapping[str, Source]) -> Round:
    """Returns the settings of a round."""
    rng = random.Random(f"{seed}/{number}")
    first = _draw(rng, sources)
    # inline, samples draw from the global generators, which the second loader's epochs seed anew
    draws_globally = first.lane == "inline" and sources[first.source].random
    if rng.random() < 0.15 and not draws_globally:
        second = _draw(
            rng, {name: s for name, s in sources.items() if s.native is not None}, "native"
        )
        return _with(first, beside=_with(second, fork=None))
    return first


def _with(settings: Round, **changes: Any) -> Round:
    return Round(
        **{name: getattr(settings, name) for name in settings.__dataclass_fields__} | changes
    )


def _draw(rng: random.Random, sources: Mapping[str, Source], lane: str | None = None) -> Round:
    lane = lane or rng.choices(LANES, _WEIGHTS)[0]
    fits = [name for name, s in sources.items() if _fits(lane, s)]
    if lane != "native":  # Python that draws, and fails, is what these lanes are about
        fits += (
            ["drawn"] * 6
            + ["iterable"] * 2
            + ["images seam"] * (2 if lane in ("auto", "chosen") else 0)
        )
    name = rng.choice(fits)
    source = sources[name]
    collation = rng.choice(("pad", "pack")) if source.ragged else "default"
    order = "iterable" if source.iterable else rng.choice(_orders(source))
    batch_size = rng.choice((1, 3, 4, 8, 17, 32))
    if not source.ragged and order in ("sequential", "shuffle") and rng.random() < 0.08:
        batch_size = None
    workers = rng.choice((1, 1, 2, 2, 3, 4, 8)) if lane == "native" else rng.choice((1, 2, 2, 3))
    torch_arguments: dict[str, Any] = {"prefetch_factor": rng.choice((1, 1, 2, 3, 4))}
    if order in ("sequential", "shuffle", "generator") and batch_size is not None:
        torch_arguments["drop_last"] = rng.random() < 0.3
    if lane == "inline":
        workers, torch_arguments["prefetch_factor"] = 0, None
    if rng.random() < 0.3 and torch.cuda.is_available():
        torch_arguments["pin_memory"] = True
    persistent = lane != "inline" and rng.random() < 0.4
    is_keyed = lane == "auto" and not source.iterable
    own: dict[str, Any] = {
        "memory_budget": rng.choice((None, None, "1KiB", "64KiB", "8MiB")),
        "tune": lane in ("native", "auto") and rng.random() < 0.3,
    }
    if lane == "native" and rng.random() < 0.1:
        own["in_order"] = False
    return Round(
        lane=lane,
        source=name,
        order=order,
        collation=collation,
        seed=rng.randrange(2**31),
        epochs=rng.choice((1, 2, 3)),
        batch_size=batch_size,
        workers=workers,
        other_workers=rng.choice((1, 2, 3)),
        persistent=persistent,
        # where workers live on, draws for batches made ahead but never taken stay drawn
        leave=rng.randrange(6)
        if rng.random() < 0.3 and not (persistent and source.random)
        else None,
        fork=rng.randrange(8) if rng.random() < 0.2 else None,
        bad=frozenset(rng.sample(range(SAMPLES), 3))
        if name == "drawn" and rng.random() < 0.5
        else frozenset(),
        resize=is_keyed and rng.random() < 0.5,
        hold=rng.choice((0, 1, 4)),
        torch=torch_arguments,
        own=own,
    )


def _fits(lane: str, source: Source) -> bool:
    return (
        source.native is not None
        if lane == "native"
        else not source.seam or lane in ("auto", "chosen")
    )


def _orders(source: Source) -> list[str]:
    orders = [
        "sequential",
        "shuffle",
        "shuffle",
        "generator",
        "replacement",
        "own",
        "own batches",
        "distributed",
    ]
    return orders + ["tokens"] * 3 if source.ragged else orders
