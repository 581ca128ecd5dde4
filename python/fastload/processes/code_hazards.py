"""What the code of functions reads or takes away outside of the process: descriptors, the standard input, files.

Owns the reading of names in compiled code. Names of modules are taken for these modules where a function imports them
itself. Runs nothing.
"""

import dis
import functools
import itertools
import os
import shutil
import sys
import types
from collections.abc import Iterable

from fastload.lowering.reading.source import codes_in
from fastload.processes.reach import globals_in, names_in

__all__ = ["reads_descriptors", "reads_stdin", "removes_files"]

_READ_ON = ("fdopen", "lseek", "read", "readv", "sendfile")
"""Functions of `os` for which the position of a descriptor matters, or that change it."""
_REMOVE = ("remove", "removedirs", "rename", "renames", "replace", "rmdir", "unlink")
"""Functions of `os` after which a file is no longer where it was."""
_REMOVE_TREES = ("move", "rmtree")
"""The same, of `shutil`."""
_OF_TABLES = {"axis", "columns", "index", "mapper"}
"""Arguments of the `rename` of tables; a path's has none of them."""


def reads_descriptors(function: types.FunctionType) -> bool:
    """Returns true if a function reads on from descriptors, by functions of `os`."""
    return _names_any(function, os, _READ_ON)


def reads_stdin(function: types.FunctionType) -> bool:
    """Returns true if a function reads the standard input."""
    names = set(names_in(function))
    if names.isdisjoint(("stdin", "__stdin__", "input", "fileinput")):
        return False
    is_builtin = "input" in globals_in(function) and "input" not in function.__globals__
    taken = _taken_from(function, "sys")
    return is_builtin or "stdin" in taken or "__stdin__" in taken or "fileinput" in names


def removes_files(function: types.FunctionType) -> bool:
    """Returns true if a function removes files, or moves them."""
    if _names_any(function, os, _REMOVE) or _names_any(function, shutil, _REMOVE_TREES):
        return True
    names = set(names_in(function))
    if "unlink" in names:
        return True
    constants = [each for code in codes_in(function.__code__) for each in code.co_consts]
    of_tables = any(type(each) is tuple and not _OF_TABLES.isdisjoint(each) for each in constants)
    return "rename" in names and not of_tables


def _names_any(
    function: types.FunctionType, module: types.ModuleType, attributes: Iterable[str]
) -> bool:
    """Returns true if a function names one of some functions of a module, or takes one from the module."""
    wanted = [vars(module)[name] for name in attributes if name in vars(module)]
    names = function.__globals__
    found = [names.get(name) for name in globals_in(function)]
    found += [vars(module).get(name) for name in _taken_from(function, module.__name__)]
    return any(each is one for each in found for one in wanted)


def _taken_from(function: types.FunctionType, module: str) -> set[str]:
    """Returns the names of attributes that a function takes from a module."""
    names, wanted = function.__globals__, sys.modules.get(module)
    return {
        attribute
        for code in codes_in(function.__code__)
        for name, attribute in _attributes(code)
        if (names[name] is wanted if name in names else name == module)
    }


@functools.lru_cache(maxsize=1024)
def _attributes(code: types.CodeType) -> frozenset[tuple[str, str]]:
    """Returns the names of variables in code, with the attributes that it takes from them at once."""
    pairs = itertools.pairwise(dis.get_instructions(code))
    return frozenset(
        (one.argval, other.argval)
        for one, other in pairs
        if one.opname.startswith("LOAD_")
        and type(one.argval) is str
        and other.opname in ("LOAD_ATTR", "LOAD_METHOD")
    )
