"""`OnError`: what a loader does about samples that cannot be made."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from torch.utils.data import IterableDataset

from fastload.checks import at_least
from fastload.faults import NEVER

__all__ = ["PAUSES_S", "OnError", "policy_of"]

PAUSES_S = 0.1, 1.0, 10.0
"""Pauses before the first retry, the second one, and all others; native threads take them, too."""

_ACTIONS = ("raise", "replace", "mask", "skip", "substitute")
_OF_A_BATCH = ("replace", "mask", "skip")


@dataclass(frozen=True)
class OnError:
    """A loader's policy for samples that cannot be made.

    A sample is bad if its file is missing or damaged, a transform cannot be applied to it, or, in Python, its
    `__getitem__` raises. Errors of the storage (EIO, ESTALE, ETIMEDOUT) are retried and then raised.
    None of these makes a sample bad: a full memory or descriptor table, an index out of range, a failed import, a
    name that is not defined, or samples that cannot be collated.

    Args:
        action: The replacement of a bad sample in its batch: `"replace"` a copy of the next good sample of
            the batch, after the last one the first; `"mask"` the same, with `sample_mask` False there; `"skip"`
            nothing, so that the batch is smaller; `"substitute"` the sample given as `substitute`. `"raise"`
            raises the error, and ignores all other arguments.
        only: For samples made in Python: the exceptions that make a sample bad; all others are raised. Empty
            for every exception but those above. Native code knows the kind of its errors, and does not read it.
        retries: Number of times that a sample is tried again if the storage fails, after 0.1 s, 1 s and then 10 s.
        max_share: Maximum share of the samples of an epoch that may be bad, 0 to 1, from its 1,000th sample on.
        max_count: Maximum of bad samples in an epoch; None for any number.
        max_in_row: Maximum of bad samples one after the other; None for any number.
        quarantine: A file to which bad samples are appended as JSON lines; each rank has a file of its own: rank 3
            writes `bad.rank3.jsonl` for `bad.jsonl`, which is rank 0's.
        substitute: The sample that takes the place of bad ones, as the dataset would return it.

    Raises:
        TypeError: `only` is not a tuple of exceptions, or `quarantine` is no path.
        ValueError: Another action, a limit out of range, an exception that never makes a sample bad in `only`,
            a `quarantine` that names no file, or a `substitute` without its action, or the reverse.

    Examples:
        >>> loader = Loader(
        ...     dataset, batch_size=64, on_error=OnError("replace", quarantine="bad.jsonl")
        ... )
    """

    action: Literal["raise", "replace", "mask", "skip", "substitute"]
    only: tuple[type[Exception], ...] = ()
    retries: int = 2
    max_share: float = 0.001
    max_count: int | None = None
    max_in_row: int | None = 100
    quarantine: str | PathLike[str] | None = None
    substitute: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if self.action not in _ACTIONS:
            msg = f"on_error should be one of {_ACTIONS} or an OnError, but got {self.action!r}"
            raise ValueError(msg)
        only: Any = self.only
        if not isinstance(only, tuple) or not all(map(_is_exception, only)):
            msg = f"only should be a tuple of exceptions, but got {self.only!r}"
            raise TypeError(msg)
        if never := [kind for kind in self.only if issubclass(kind, NEVER)]:
            msg = f"only={never[0].__name__} is not an error of a sample: it is always raised"
            raise ValueError(msg)
        if not 0 <= self.max_share <= 1:
            msg = f"max_share should be a share from 0 to 1, but got {self.max_share}"
            raise ValueError(msg)
        at_least("retries", self.retries, 0)
        for name in ("max_count", "max_in_row"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0)
        if self.quarantine is not None:
            path = Path(self.quarantine)
            if not path.name or "\0" in str(path):
                msg = f"quarantine should be the path of a file, but got {self.quarantine!r}"
                raise ValueError(msg)
        if (self.substitute is None) == (self.action == "substitute"):
            msg = (
                "on_error='substitute' needs the sample: OnError('substitute', substitute=...)"
                if self.substitute is None
                else f"substitute= is for the action 'substitute', but the action is {self.action!r}"
            )
            raise ValueError(msg)

    @property
    def pauses(self) -> Iterator[float]:
        """The seconds before each retry."""
        last = len(PAUSES_S) - 1
        return (PAUSES_S[min(number, last)] for number in range(self.retries))


def policy_of(on_error: Any, loader: Any) -> OnError | None:
    """Returns the policy of `Loader(on_error=...)`; None where errors are raised as they are.

    Raises:
        TypeError: Neither a string nor an `OnError`.
        ValueError: An unknown action, or one that the loader's batches do not allow.
    """
    if on_error == "raise":
        return None
    if isinstance(on_error, str):
        on_error = OnError(on_error)  # type: ignore[arg-type]
    if not isinstance(on_error, OnError):
        msg = f"on_error should be one of {_ACTIONS} or an OnError, but got {on_error!r}"
        raise TypeError(msg)
    if on_error.action == "raise":
        return None
    if isinstance(loader.dataset, IterableDataset):
        msg = (
            f"on_error={on_error.action!r} needs a map-style dataset: {type(loader.dataset).__qualname__} is "
            "iterable, and an iterator that has raised ends; handle errors in its __iter__"
        )
        raise ValueError(msg)
    if on_error.action in _OF_A_BATCH and not loader._auto_collation:
        msg = (
            f"on_error={on_error.action!r} takes good samples of the same batch, and with batch_size=None "
            "there is one sample: set batch_size, or use OnError('substitute', substitute=...)"
        )
        raise ValueError(msg)
    return on_error


def _is_exception(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)
