"""`Ledger`: the account of a loader's bad samples.

Owns their count, the limits, the list, the file and the log lines. Counts a batch when it is handed over, so
that a limit is exceeded at the same batch for any number of threads or workers.
"""

import contextlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch.utils.data import SequentialSampler

from fastload.bad_samples.fetching import Fetched
from fastload.bad_samples.policy import OnError, policy_of
from fastload.bad_samples.sample_files import first_file, stamp
from fastload.faults import REASONS
from fastload.machine.ranks import rank, rank_of
from fastload.rank_files import file_of, is_torn

__all__ = ["BadSample", "BadSamplesError", "Ledger"]

_log = logging.getLogger("fastload")

_NAMED = 10
"""Bad samples that an error names, and those of an epoch that a state names."""
_SHARE_FROM = 1000
"""Samples of an epoch from which on `max_share` holds."""


@dataclass(frozen=True)
class BadSample:
    """A sample that could not be made.

    Attributes:
        epoch: The epoch, counted from the loader's first in this process.
        batch: The number of its batch in the epoch; with `in_order=False` in the order of the hand-over.
        position: Its position in the planned batch.
        index: Its dataset index; words for an index that is no integer.
        path: Its file; empty if unknown.
        reason: `"missing"`, `"decode"`, `"transform"`, or `"exception"` for any other of the dataset's code.
        error: The exception, in words.
    """

    epoch: int
    batch: int
    position: int
    index: int | str
    path: str
    reason: str
    error: str


class BadSamplesError(RuntimeError):
    """More samples are bad than `OnError` allows, or all samples of a batch."""


class Ledger:
    """Counts bad samples where batches are handed over.

    Attributes:
        policy: The policy for them.
        records: The bad samples of the epoch, in the order of their batches.
        sizes: Indices of the first bad samples of the epoch, also those before it was resumed, and the bytes of their
            files; None for one that does not exist, and where the dataset lists none.
    """

    def __init__(self, policy: OnError, loader: Any, order: Any) -> None:
        self.policy = policy
        self.records: list[BadSample] = []
        self.sizes: list[tuple[int, int | None]] = []
        self._dataset = loader.dataset
        # the sampler visits each sample once, in the order of the dataset
        self._evaluates = type(order) is SequentialSampler
        self._epoch = -1
        self._samples = self._retried = self._in_row = 0
        self._last: tuple[int, Sequence[int]] = (0, ())
        self._written: set[Any] | None = None  # read from the file at the first write
        self._is_written = True  # False once the file cannot be written

    @classmethod
    def of(cls, loader: Any, order: Any) -> "Ledger | None":
        """Returns a ledger for a loader and the sampler of its order; None if it raises errors as they are."""
        policy = policy_of(loader.on_error, loader)
        return None if policy is None else cls(policy, loader, order)

    def begin(self, sizes: Sequence[tuple[int, int | None]] = ()) -> None:
        """Begins an epoch, and logs if files have changed that were bad in its first part, by the `sizes` of then."""
        self._epoch += 1
        self.records = []
        self.sizes = list(sizes)
        changed = [index for index, size in sizes if self._size(index) != size]
        if changed:
            _log.warning(
                "resuming: the files of %d of %d bad samples have changed since the state was saved, first that of "
                "sample %d; the batches before the state were made without them",
                len(changed),
                len(sizes),
                changed[0],
            )
        self._samples = self._retried = self._in_row = 0

    def taken(self, fetched: Fetched, batch: int) -> Any:
        """Counts the samples of a batch that is handed over, and returns the batch.

        Args:
            fetched: The batch, with its bad samples.
            batch: Its number in the epoch.

        Raises:
            BadSamplesError: All of its samples are bad, or a limit is exceeded.
        """
        self._last = fetched.samples, [bad.position for bad in fetched.bad]
        self._samples += fetched.samples
        self._retried += fetched.retried
        if fetched.bad:
            self._note([BadSample(self._epoch, batch, *bad) for bad in fetched.bad])
        if self.records:
            self._check(fetched)
        is_all_bad = bool(fetched.bad) and len(fetched.bad) == fetched.samples
        if is_all_bad and self.policy.action != "substitute":
            records = self.records[-fetched.samples :]
            msg = f"all {len(records)} samples of batch {batch} are bad"
            raise self._error(msg, records)
        return fetched.batch

    def add_clean(self, samples: int) -> None:
        """Counts the samples of batches that were handed over without a bad one, in an epoch without one so far."""
        self._samples += samples

    def _note(self, new: list[BadSample]) -> None:
        """Adds bad samples to the list, the log and the file."""
        before = len(self.records)
        self.records += new
        room = _NAMED - len(self.sizes)
        indices = [record.index for record in new[: max(0, room)]]
        self.sizes += [(index, self._size(index)) for index in indices if isinstance(index, int)]
        self._tell(before, new)
        self._write(new)

    def _size(self, index: int) -> int | None:
        """Returns the bytes of the first file that the dataset lists for a sample."""
        return stamp(first_file(self._dataset, index))[0]

    def marks(self, marks: bytes) -> bytes:
        """Returns the marks of the batch handed over last: 0 where a sample is bad and masked, none where skipped.

        Args:
            marks: A byte for each planned sample: 0 for a filler, else 1; empty for all 1.
        """
        samples, bad = self._last
        kept = bytearray(marks or bytes([1]) * samples)
        for position in reversed(bad):
            if self.policy.action == "skip":
                del kept[position]
            elif self.policy.action == "mask":
                kept[position] = 0
        return bytes(kept)

    def end(self) -> None:
        """Logs the sum of an epoch."""
        if not self.records:
            return
        msg = "epoch %d: %d of %d samples are bad (%s)"
        reasons = Counter(record.reason for record in self.records)
        words = ", ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items()))
        if self._evaluates and self.policy.action != "substitute":
            msg += ", and were not evaluated"
        _log.warning(msg, self._epoch, len(self.records), self._samples, words)

    def stats(self) -> dict[str, int]:
        """Returns the counts of the epoch: of bad samples, by reason, and of retries."""
        reasons = Counter(record.reason for record in self.records)
        counts = {reason: reasons[reason] for reason in REASONS}
        return {"total": len(self.records), **counts, "retried": self._retried}

    def _check(self, fetched: Fetched) -> None:
        policy, count = self.policy, len(self.records)
        longest = self._longest_row(fetched)  # counted also where another limit is exceeded
        if policy.max_count is not None and count > policy.max_count:
            msg = f"{count} samples are bad, and max_count={policy.max_count}"
            raise self._error(msg, self.records, ", or raise max_count of on_error")
        if policy.max_in_row is not None and longest > policy.max_in_row:
            msg = (
                f"{longest} samples one after the other are bad, and max_in_row={policy.max_in_row}"
            )
            raise self._error(msg, self.records, ", or raise max_in_row of on_error")
        if self._samples >= _SHARE_FROM and count > policy.max_share * self._samples:
            msg = f"{count} of {self._samples} samples are bad, and max_share={policy.max_share}"
            raise self._error(msg, self.records, ", or raise max_share of on_error")

    def _longest_row(self, fetched: Fetched) -> int:
        """Returns the most bad samples one after the other, up to the end of a batch; the next one goes on with it."""
        row, longest, previous = self._in_row, 0, -1
        for bad in fetched.bad:
            row = row + 1 if bad.position == previous + 1 else 1
            longest, previous = max(longest, row), bad.position
        self._in_row = row if previous == fetched.samples - 1 else 0
        return longest

    def _error(self, what: str, records: list[BadSample], remedy: str = "") -> BadSamplesError:
        number, ranks = rank_of()
        named = "; ".join(map(_named, records[:_NAMED]))
        more = f"; and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
        others = f" The other {ranks - 1} ranks wait for this one now." if ranks > 1 else ""
        where = f"rank {number}, epoch {self._epoch}"
        return BadSamplesError(
            f"{what} ({where}): repair or exclude these samples{remedy}: {named}{more}.{others}"
        )

    def _tell(self, before: int, new: list[BadSample]) -> None:
        """Logs the 1st, 2nd, 4th, 8th, ... bad sample of an epoch."""
        for count, record in enumerate(new, before + 1):
            if count & (count - 1) == 0:
                action = self.policy.action
                _log.warning("bad sample %d (on_error=%r): %s", count, action, _named(record))

    def _write(self, records: list[BadSample]) -> None:
        """Appends bad samples to the file, each once until its file changes."""
        if not self._is_written or self.policy.quarantine is None:
            return
        path = file_of(self.policy.quarantine, rank())
        try:
            lines = []
            if self._written is None:
                self._written = _listed_in(path)
                lines += ["\n"] if is_torn(path) else []
            for record in records:
                size, mtime_ns = stamp(record.path)
                known = record.index, record.path, size, mtime_ns
                if known not in self._written:
                    self._written.add(known)
                    line = asdict(record) | {"size": size, "mtime_ns": mtime_ns}
                    lines.append(json.dumps(line) + "\n")
            if lines:
                with path.open("a", encoding="utf-8") as file:
                    file.writelines(lines)
        except OSError as error:
            self._is_written = False
            _log.warning(
                "cannot write bad samples to %s: %s; from here on they are only in loader.bad",
                path,
                error,
            )


def _listed_in(path: Path) -> set[Any]:
    """Returns the samples that a file lists already, from an earlier start of the run."""
    listed: set[Any] = set()
    if not path.is_file():  # also a device, which may have no end
        return listed
    with path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, TypeError, KeyError):  # torn, or another's
                values = json.loads(line)
                listed.add(tuple(values[name] for name in ("index", "path", "size", "mtime_ns")))
    return listed


def _named(record: BadSample) -> str:
    at = f" ({record.path})" if record.path else ""
    return f"sample {record.index}{at}: {record.error}"
