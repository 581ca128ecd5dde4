"""`Profile`: measured settings of a loader, with the machine and the data of the measurement.

Owns the TOML file: its tables, and one clear sentence where it is broken. Applies nothing.
"""

import dataclasses
import json
import logging
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastload import _lib
from fastload.checks import at_least, check_choice
from fastload.registry import name
from fastload.sizes import length_of
from fastload.tune.machine import Machine

_LOGGER = logging.getLogger("fastload")
_LANES = ("native", "process", "threads", "inline")

_SETTINGS: dict[str, tuple[type, int | None]] = {
    "lane": (str, None),
    "workers": (int, 0),
    "depth": (int, 1),
    "memory_budget": (int, 1),
    "pin_memory": (bool, None),
}
"""Types and least values of the settings."""

_OPTIONAL = ("memory_budget", "pin_memory")


@dataclass(frozen=True)
class Data:
    """The properties of a dataset that are known without reading a sample.

    Reading a sample may draw random numbers or take long.

    Attributes:
        kind: Its class.
        length: Number of samples; -1 where it has no length.
        sample: Dtype and shape of a sample's values, where native code makes it; else empty.
    """

    kind: str
    length: int = -1
    sample: str = ""

    @classmethod
    def of(cls, dataset: Any, program: _lib.Program | None = None) -> "Data":
        """Returns the properties of a dataset.

        Args:
            dataset: The dataset.
            program: The native program that makes its samples, if there is one.
        """
        length = length_of(dataset)
        layout = [] if program is None else program.layout()
        shapes = ("(...)" if shape is None else str(shape) for shape, _ in layout)
        sample = ", ".join(
            f"{dtype} {shape}" for (_, dtype), shape in zip(layout, shapes, strict=True)
        )
        return cls(name(type(dataset)), -1 if length is None else length, sample)

    def differences(self, here: "Data") -> Iterator[str]:
        """Yields what differs between this dataset and the one here, in words."""
        if self.kind != here.kind:
            yield f"a dataset {self.kind}, here {here.kind}"
        elif self.length != here.length:
            yield f"{_samples(self.length)}, here {_samples(here.length)}"
        if self.sample and here.sample and self.sample != here.sample:
            yield f"samples of {self.sample}, here {here.sample}"


@dataclass(frozen=True)
class Profile:
    """Settings to start from, as `python -m fastload.tune` finds them.

    Args:
        workers: Threads, or worker processes; 0 to load inline.
        depth: Batches in flight.
        lane: The recommended one: `"native"`, `"process"`, `"threads"` or `"inline"`.
        memory_budget: Bytes of batches made ahead; None for the default.
        pin_memory: True if page-locked memory is recommended; None for no recommendation.
        machine: The machine that it was measured on.
        data: The dataset it was measured with; None for any.
        measured: The measurements by name: numbers, strings, lists and tables of them.

    Raises:
        ValueError: A setting that no loader can have.
        TypeError: A setting of another type.
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
            value = getattr(self, key)
            if value is None and key in _OPTIONAL:
                continue
            if type(value) is not kind:
                msg = f"{key} should be {kind.__name__}, but got {value!r}"
                raise TypeError(msg)
            if least is not None:
                at_least(key, value, least)
        check_choice("lane", self.lane, _LANES)
        if (self.workers == 0) != (self.lane == "inline"):
            msg = f"workers={self.workers} does not go with lane={self.lane!r}: inline has none"
            raise ValueError(msg)

    @classmethod
    def load(cls, path: str | Path) -> "Profile":
        """Reads a profile.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not a profile.
        """
        command = f"with 'python -m fastload.tune TARGET -o {path}'"
        advice = f"write it anew {command}"
        try:
            tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            remedy = f"write one {command}" if is_missing else advice
            msg = f"cannot read the profile {path}: {error.strerror}; {remedy}"
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
        for key in _SETTINGS:
            if key not in settings and key not in _OPTIONAL:
                msg = f"[settings] has no key {key!r}"
                raise ValueError(msg)
        return cls(
            **settings,
            machine=_record(Machine, tables, "machine"),
            data=_record(Data, tables, "dataset") if "dataset" in tables else None,
            measured=_table(tables, "measured") if "measured" in tables else {},
        )

    def save(self, path: str | Path) -> None:
        """Writes the profile as TOML.

        Raises:
            OSError: The file cannot be written.
            TypeError: `measured` has a value of a type that TOML does not have.
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
        text = "\n".join(
            "\n".join([f"[{_key(name)}]", *_pairs(table), ""]) for name, table in tables.items()
        )
        _lib.write_file(path, (head + text).encode())

    def differences(self, data: Data) -> list[str]:
        """Returns the differences from this machine and the dataset that is loaded here, in words."""
        found = list(self.machine.differences(Machine.here()))
        return found if self.data is None else found + list(self.data.differences(data))

    def fits(self, data: Data, lane: str) -> bool:
        """Returns true if it was measured here; logs a warning that names what differs.

        Args:
            data: The dataset that is loaded here.
            lane: The lane that the loader takes here.
        """
        differences = self.differences(data)
        lane = "inline" if lane == "consumer" else lane  # both in the training thread
        if lane != self.lane:
            differences.append(f"the {self.lane} lane, here {lane}")
        if differences:
            _LOGGER.warning(
                "the profile does not match this run (%s); tuning starts from it and measures again",
                "; ".join(differences),
            )
        return not differences


def _samples(length: int) -> str:
    return "no length" if length < 0 else f"{length} samples"


def profile_of(tune: Any) -> Profile | None:
    """Returns the profile that a loader's argument `tune` is or names; None for a bool.

    Raises:
        OSError: The file cannot be read.
        TypeError: `tune` has another type.
        ValueError: The file is not a profile.
    """
    if isinstance(tune, bool):
        return None
    if isinstance(tune, Profile):
        return tune
    if isinstance(tune, str | os.PathLike):
        return Profile.load(os.fspath(tune))
    msg = (
        "tune should be True, False, a fastload.Profile or the path of one, "
        f"but got {type(tune).__name__}"
    )
    raise TypeError(msg)


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name)
    if not isinstance(table, dict):
        msg = f"it has no table [{name}]"
        raise ValueError(msg)
    return table


def _record(kind: Any, tables: Mapping[str, Any], name: str) -> Any:
    """Returns a table as a dataclass; keys of later versions are left out."""
    table, values = _table(tables, name), {}
    each: Any  # the fields' types are classes here
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


def _pairs(table: Mapping[str, Any]) -> list[str]:
    """Returns a table's entries as TOML, which `tomllib` reads back; None is left out."""
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _json(name)


def _json(value: float | str) -> str:
    """Returns a value as TOML and JSON write it alike; but TOML has no surrogates, and escapes DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _value(value: Any) -> str:
    match value:
        case float() if not math.isfinite(value):
            return str(float(value))  # inf, -inf and nan are written alike in TOML
        case bool() | int() | float() | str():
            return _json(value)
        case Mapping():
            return f"{{ {', '.join(_pairs(value))} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    msg = f"a profile cannot store a value of type {type(value).__name__}"
    raise TypeError(msg)
