"""How long an epoch of 10^8 samples takes to its first batch: from its start, and resumed at 90 % of it.

Rows of one byte, with each sampler and with torch's loader from the start (which cannot resume); then what
`state_dict()` takes, and its size. `--case` is one of the samplers.
"""

import functools
import itertools
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from _contest import Bench, interleave, median
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import fastload

SAMPLES, BATCH_SIZE = 10**8, 1_000
FIRST, STATE = "s to the first batch", "µs for state_dict()"
DATA = TensorDataset(torch.zeros(SAMPLES, dtype=torch.uint8))


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "shuffled": lambda: {"shuffle": True},
    "shuffled by a generator": lambda: {
        "shuffle": True,
        "generator": torch.Generator().manual_seed(1),
    },
    "in order": dict,
    "distributed": lambda: {"sampler": DistributedSampler(DATA, num_replicas=2, rank=0)},
}


def loader_of(kind: Callable[..., Any], case: str) -> Any:
    """Makes a loader whose batches come in the order of `case`."""
    torch.manual_seed(1)
    return kind(DATA, batch_size=BATCH_SIZE, **CASES[case]())


def first(batches: Iterable[Any]) -> dict[str, float]:
    """Times the start of an epoch."""
    began_s = time.perf_counter()
    next(iter(batches))
    return {FIRST: time.perf_counter() - began_s}


def resumed(case: str) -> dict[str, float]:
    """Times the same from a state that an epoch had after nine tenths of its batches."""
    loader = loader_of(fastload.Loader, case)
    next(iter(loader))
    state = loader.state_dict()
    batches = len(loader) * 9 // 10
    for key in ("_num_yielded", "_sampler_iter_yielded"):
        state[key] = batches  # as Accelerate skips batches
    state["_index_sampler_state"]["samples_yielded"] = batches * BATCH_SIZE
    loader = loader_of(fastload.Loader, case)
    began_s = time.perf_counter()
    loader.load_state_dict(state)
    next(iter(loader))
    return {FIRST: time.perf_counter() - began_s}


def saving(loader: fastload.Loader, calls: int = 1_000) -> tuple[dict[str, float], int]:
    """Times `state_dict()` after batches; returns the bytes of its JSON, too."""
    batches = iter(loader)
    spent_s, state = 0.0, {}
    for _ in itertools.islice(batches, calls):
        began_s = time.perf_counter()
        state = loader.state_dict()
        spent_s += time.perf_counter() - began_s
    return {STATE: 1e6 * spent_s / calls}, len(json.dumps(state))


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3, cases=list(CASES))
    for case in bench.cases:
        contestants: dict[str, Callable[[], dict[str, float]]] = {
            "fastload, from the start": lambda case=case: first(loader_of(fastload.Loader, case)),
            "fastload, resumed at 90 %": functools.partial(resumed, case),
            "torch, from the start": lambda case=case: first(loader_of(DataLoader, case)),
        }
        figures = interleave(contestants, bench.rounds)
        bench.show(f"{SAMPLES:,} indices, {case}", figures, digits=3)
        ours = median(figures, "fastload, resumed at 90 %", FIRST)
        starts = {who: median(figures, who, FIRST) for who in contestants if "start" in who}
        for who, start_s in starts.items():
            bench.claim(f"{case}: resumed, by the start of an epoch of {who}", ours / start_s, 1)
    figures = interleave(
        {"shuffled": lambda: saving(loader_of(fastload.Loader, "shuffled"))[0]}, bench.rounds
    )
    bench.show("state_dict()", figures)
    bench.claim("µs for state_dict()", median(figures, "shuffled", STATE), 20)
    bench.claim("bytes of a state", saving(loader_of(fastload.Loader, "shuffled"), 1)[1], 1_000)
    bench.close()


if __name__ == "__main__":
    main()
