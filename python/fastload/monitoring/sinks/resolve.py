"""Sinks from what users pass as `to`."""

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from fastload.monitoring.sinks.jsonl import JsonLines
from fastload.monitoring.sinks.prometheus import Prometheus
from fastload.monitoring.sinks.sink import Sink
from fastload.monitoring.sinks.trackers import (
    Function,
    Mlflow,
    OpenTelemetry,
    TensorBoard,
    Wandb,
)
from fastload.rank_files import file_of

__all__ = ["resolve"]

_ADMITTED = (
    "a SummaryWriter, a W&B run or 'wandb', 'mlflow', 'mlflow:RUN_ID', 'prometheus:PORT', an OpenTelemetry meter, "
    "a path ending in .jsonl, or a function of (window, findings)"
)
_SUFFIX = ".jsonl"
_HIGHEST_PORT = 65535


def resolve(to: Any, rank: int = 0) -> list[Sink]:
    """Returns the sinks that `to` names.

    Several ranks may name the same: rank 3 writes `run.rank3.jsonl` for `run.jsonl`, and the second process of a host
    listens one port above the one given.

    Args:
        to: None, a `Sink`, one of `_ADMITTED`, or a list of them.
        rank: Rank of this process.

    Raises:
        TypeError: Something else.
        ValueError: A string that names no sink, or a port that is none.
        OSError: The file cannot be written, or the port is taken.
        ImportError: wandb or mlflow is named, and not installed.
    """
    if to is None:
        return []
    several = to if isinstance(to, Sequence) and not isinstance(to, str | bytes) else [to]
    made: list[Sink] = []
    try:
        for each in several:
            made.append(_sink(each, rank))  # noqa: PERF401 (an error closes those made so far)
    except BaseException:
        for sink, given in zip(made, several, strict=False):
            if sink is not given:  # a sink of the user's stays the user's
                with contextlib.suppress(Exception):
                    sink.close()
        raise
    return made


def _sink(to: Any, rank: int) -> Sink:
    if isinstance(to, Sink):
        return to
    if isinstance(to, str | os.PathLike):
        return _named(os.fspath(to), rank)
    if hasattr(to, "add_scalar"):
        return TensorBoard(to)
    if hasattr(to, "define_metric") and hasattr(to, "log"):
        return Wandb(to)
    if hasattr(to, "create_observable_gauge"):
        return OpenTelemetry(to)
    if hasattr(getattr(to, "info", None), "run_id"):
        return Mlflow(to.info.run_id)
    if callable(to):
        return Function(to)
    msg = f"a monitor cannot write to {to!r} ({type(to).__name__}); `to` takes {_ADMITTED}"
    raise TypeError(msg)


def _named(to: str, rank: int) -> Sink:
    kind, _, rest = to.partition(":")
    if to.endswith(_SUFFIX):
        return JsonLines(file_of(to, rank), rank)
    if to == "wandb":
        return Wandb()
    if kind == "mlflow":
        return Mlflow(rest)
    if kind == "prometheus":
        if not rest.isdecimal() or int(rest) > _HIGHEST_PORT:
            msg = f"to={to!r} names no port: write to='prometheus:9400'"
            raise ValueError(msg)
        port = int(rest)
        return Prometheus(port + _local_rank(rank) if port else 0)
    msg = f"to={to!r} names no sink; `to` takes {_ADMITTED}"
    raise ValueError(msg)


def _local_rank(rank: int) -> int:
    """Returns the number of this process among those of its host, as launchers give it."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return rank
