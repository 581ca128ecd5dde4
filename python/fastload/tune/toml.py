"""TOML, written: what `tomllib` reads back as it was.

Owns the few kinds that a profile has: tables of text, numbers, truth values, lists and tables within
lists. Refuses everything else.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["dumps"]


def dumps(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns a document of named tables.

    Raises:
        TypeError: A value of another kind; None is left out.
    """
    return "\n".join(
        f"[{_key(name)}]\n"
        + "".join(f"{_key(key)} = {_value(value)}\n" for key, value in _given(table))
        for name, table in tables.items()
    )


def _given(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in table.items() if value is not None]


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def _text(text: str) -> str:
    """Returns a basic string: JSON's, but that TOML has no surrogates and escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(float(value))
        case float():
            return str(float(value))  # inf, -inf and nan are TOML's own words
        case str():
            return _text(value)
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {_value(inside)}" for key, inside in _given(value))
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    msg = f"a profile has no place for {type(value).__name__}"
    raise TypeError(msg)
