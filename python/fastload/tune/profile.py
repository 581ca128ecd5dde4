"""`Profile`: settings of a loader that were found once, with what they were found on.

Owns the file: what is in it, and one clear sentence where it is broken. Applies nothing.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastload import _lib
from fastload.tune import toml
from fastload.tune.fingerprint import Data, Machine

__all__ = ["Profile"]

_LANES = ("native", "process", "threads", "inline")


@dataclass(frozen=True)
class Profile:
    """Settings to start from, as `python -m fastload.tune` finds them.

    Args:
        workers: Threads, or worker processes; 0 to load inline.
        depth: Batches in flight.
        lane: The recommended one: `"native"`, `"process"`, `"threads"` or `"inline"`.
        memory_budget: Bytes of batches made ahead; None for the default.
        pin_memory: Whether page-locked memory is recommended; None where nothing is said.
        machine: What it was measured on.
        data: The dataset it was measured with; None for any.
        measured: What was measured: numbers, text, lists and tables of them, by name.

    Raises:
        ValueError: A setting that no loader can have.
        TypeError: One of another type.
    """

    workers: int
    depth: int
    lane: str = "native"
    memory_budget: int | None = None
    pin_memory: bool | None = None
    machine: Machine = field(default_factory=Machine.here)
    data: Data | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, (kind, least) in _SETTINGS.items():
            _check(key, getattr(self, key), kind, least)
        if self.lane not in _LANES:
            msg = f"lane should be one of {_LANES}, but got {self.lane!r}"
            raise ValueError(msg)
        if (self.workers == 0) != (self.lane == "inline"):
            msg = f"workers={self.workers} does not go with lane={self.lane!r}: inline has none"
            raise ValueError(msg)

    @classmethod
    def load(cls, path: str | Path) -> "Profile":
        """Reads a profile.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no profile.
        """
        advice = f"write it anew with 'python -m fastload.tune TARGET -o {path}'"
        try:
            tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            msg = f"cannot read the profile {path}: {error.strerror}; {advice}"
            raise type(error)(msg) from None
        except ValueError as error:  # of TOML, or of UTF-8
            msg = f"the profile {path} is not TOML: {error}; {advice}"
            raise ValueError(msg) from None
        try:
            return cls._of(tables)
        except (TypeError, ValueError) as error:
            msg = f"the profile {path} is broken: {error}; {advice}"
            raise ValueError(msg) from None

    @classmethod
    def _of(cls, tables: Mapping[str, Any]) -> "Profile":
        settings = _table(tables, "settings")
        for key in settings:
            if key not in _SETTINGS:
                msg = f"[settings] has an unknown key {key!r}"
                raise ValueError(msg)
        for key in ("workers", "depth", "lane"):
            if key not in settings:
                msg = f"[settings] has no key {key!r}"
                raise ValueError(msg)
        return cls(
            **settings,
            machine=_print(Machine, _table(tables, "machine"), "machine"),
            data=_print(Data, _table(tables, "dataset"), "dataset")
            if "dataset" in tables
            else None,
            measured=_table(tables, "measured") if "measured" in tables else {},
        )

    def save(self, path: str | Path) -> None:
        """Writes the profile as TOML.

        Raises:
            OSError: The file cannot be written.
            TypeError: Something was measured that TOML has no kind for.
        """
        tables: dict[str, Mapping[str, Any]] = {
            "settings": {key: getattr(self, key) for key in _SETTINGS},
            "machine": dataclasses.asdict(self.machine),
        }
        if self.data is not None:
            tables["dataset"] = dataclasses.asdict(self.data)
        if self.measured:
            tables["measured"] = self.measured
        head = f'# Settings of a fastload.Loader: Loader(..., tune="{Path(path).name}") starts from them.\n\n'
        _lib.write_file(path, (head + toml.dumps(tables)).encode())

    def differences(self, data: Data) -> list[str]:
        """Returns what is different here, in words.

        Args:
            data: The dataset that is loaded here.
        """
        found = list(self.machine.differences(Machine.here()))
        return found if self.data is None else found + list(self.data.differences(data))


_SETTINGS: dict[str, tuple[type, int | None]] = {
    "lane": (str, None),
    "workers": (int, 0),
    "depth": (int, 1),
    "memory_budget": (int, 1),
    "pin_memory": (bool, None),
}
"""Types and least values of the settings."""

_MAY_MISS = ("memory_budget", "pin_memory")


def _check(key: str, value: Any, kind: type, least: int | None) -> None:
    if value is None and key in _MAY_MISS:
        return
    if type(value) is not kind:
        msg = f"{key} should be {kind.__name__}, but got {value!r}"
        raise TypeError(msg)
    if isinstance(value, int) and least is not None and value < least:
        msg = f"{key} should be at least {least}, but got {value}"
        raise ValueError(msg)


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name)
    if not isinstance(table, dict):
        msg = f"it has no table [{name}]"
        raise ValueError(msg)
    return table


def _print(kind: Any, table: Mapping[str, Any], name: str) -> Any:
    """Returns a fingerprint; keys of later versions are left out."""
    values = {}
    each: Any  # fields name their types by classes here
    for each in dataclasses.fields(kind):
        if each.name in table:
            value = table[each.name]
            if type(value) is not each.type:
                msg = f"[{name}] {each.name} should be {each.type.__name__}, but got {value!r}"
                raise TypeError(msg)
            values[each.name] = value
        elif each.default is dataclasses.MISSING:
            msg = f"[{name}] has no key {each.name!r}"
            raise ValueError(msg)
    return kind(**values)
