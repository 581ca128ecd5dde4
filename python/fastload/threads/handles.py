"""Objects that hold a position or a native handle, so that threads must not share them.

A file and a generator have a position, and a database connection serves one query at a time.
Such objects cannot be copied, which is how those of unknown libraries are recognised: they do not pickle.
"""

import copyreg
import io
import tarfile
import weakref
import zipfile
from typing import Any

__all__ = ["is_handle"]

_KNOWN = (io.IOBase, tarfile.TarFile, zipfile.ZipFile)

_MARKS = {"__dict__", "__slots__", "__weakref__"}

_unpicklable: "weakref.WeakKeyDictionary[type, bool]" = weakref.WeakKeyDictionary()


def is_handle(thing: Any) -> bool:
    """Returns true if an object must stay with one thread."""
    if isinstance(thing, _KNOWN):
        return True
    kind = type(thing)
    if _is_written_in_python(kind):
        return False
    if hasattr(kind, "__next__"):
        return True
    if kind not in _unpicklable:
        _unpicklable[kind] = not _pickles(thing)
    return _unpicklable[kind]


def _is_written_in_python(kind: type) -> bool:
    """Returns true if a class was made by a `class` statement, or derives from one that was."""
    return any(not _MARKS.isdisjoint(vars(each)) for each in kind.__mro__)


def _pickles(thing: Any) -> bool:
    if type(thing) in copyreg.dispatch_table:  # a compiled regular expression
        return True
    try:
        thing.__reduce_ex__(4)
    except Exception:  # TypeError by custom; each library has its own
        return False
    return True
