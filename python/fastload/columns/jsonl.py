"""`Jsonl`: fields of JSON lines."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, final

from fastload import _lib
from fastload.columns.column import Table, dtype_name
from fastload.columns.files import Paths, one_or_more, progress

Field = str | tuple[str, ...]
"""The key of a field, or the keys of a nested one: `"meta.lang"` or `("meta", "lang")`."""


@final
class Jsonl(Table):
    """One field of JSON lines, or several: a line is parsed once for all fields that are not lists.

    Each line that is not empty is a sample. Values are those of `json.loads`: integers become int64, floats
    float64, booleans bool, and strings text. A list of numbers is a tensor `(n,)`: a batch of lists of one
    length is `(B, n)`, where torch would make n tensors of them; different lengths raise the error of
    `torch.stack`.

    Args:
        paths: Files, one path, or a pattern such as `"shards/*.jsonl"`, whose matches are sorted.
        field: A key; keys joined by dots, or a tuple of keys (which may contain dots), for a field of nested
            objects. The empty tuple is the line's whole value. A list of fields, for samples that are dicts
            with these names; lines are parsed once for all fields that are not lists.
        dtype: One of torch's dtypes, or int, float, bool or str; of a list of fields, a dict by name.
            None: inferred from the first 100 lines; integers mixed with floats are float64.
        index: True to store the offsets of lines beside each file, as `data.jsonl.index`; or the path of the
            index of a single file. An index is used as long as the file's size and time match, and rewritten
            otherwise. None: no index is written; each column scans for the lines.

    Raises:
        TypeError: Paths, fields or dtypes of other types.
        ValueError: A pattern without matches, or one path of an index for several files.
        OSError: A file cannot be read, its index cannot be written, or the first lines do not determine the
            type of a field. A line that is not JSON, or whose value is missing or of another type, raises an
            error when its sample is read, which names file, line and field.

    Examples:
        >>> text = Jsonl("train.jsonl", "text")
        >>> both = Jsonl("train.jsonl", ["text", "meta.label"])
        >>> both[0]
        {'text': 'Once upon a time', 'meta.label': tensor(3)}
    """

    def __init__(
        self,
        paths: Paths | os.PathLike[str],
        field: Field | list[Field],
        *,
        dtype: Any = None,
        index: bool | str | os.PathLike[str] | None = None,
    ) -> None:
        self._paths = one_or_more(paths)
        several = isinstance(field, list)
        self._fields = list(field) if isinstance(field, list) else field
        self._arguments = (self._paths, self._fields), {"dtype": dtype, "index": index}
        fields = [_keys(each) for each in (field if isinstance(field, list) else [field])]
        named = [".".join(keys) for keys in fields]
        if not fields:
            msg = "field is an empty list; give at least one field"
            raise ValueError(msg)
        if len(set(named)) < len(named):
            msg = f"field has a name twice, but samples are dicts of them: {named}"
            raise ValueError(msg)
        dtypes = (
            _dtypes(dtype, named) if several else [None if dtype is None else dtype_name(dtype)]
        )
        with progress("lines", " MiB") as tell:
            lines = _lib.Lines(self._paths, _stored(self._paths, index=index), tell)
        source = _lib.Jsonl(lines, fields, dtypes)
        natives = {name: source.column(place) for place, name in enumerate(named)}
        super().__init__(natives, named if several else named[0])

    def __repr__(self) -> str:
        return f"Jsonl({self._fields!r} of {len(self)} lines)"


def _keys(field: Any) -> list[str]:
    keys: Iterable[Any] = field.split(".") if isinstance(field, str) else field
    if not isinstance(field, str | tuple) or not all(isinstance(key, str) for key in keys):
        msg = f"field is a key, or a tuple of keys, which are text; found {field!r}"
        raise TypeError(msg)
    return list(keys)


def _dtypes(dtype: Any, names: list[str]) -> list[str | None]:
    """Returns the dtype of each of several fields."""
    if dtype is None:
        return [None] * len(names)
    if not isinstance(dtype, Mapping):
        msg = f"of several fields, dtype is a dict by their names, not {dtype!r}"
        raise TypeError(msg)
    if unknown := set(dtype) - set(names):
        msg = f"dtype has {', '.join(map(repr, unknown))}, and the fields are {names}"
        raise ValueError(msg)
    return [dtype_name(dtype[name]) if name in dtype else None for name in names]


def _stored(paths: list[str], *, index: bool | str | os.PathLike[str] | None) -> list[str]:
    """Returns the path of the index of each file; empty without indexes."""
    if index is None or index is False:
        return []
    if index is True:
        return [f"{path}.index" for path in paths]
    if len(paths) != 1:
        msg = f"one path of an index for {len(paths)} files; index=True keeps one beside each"
        raise ValueError(msg)
    return [os.fspath(index)]
