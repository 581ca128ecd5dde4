"""Code that reads or takes away what lies outside of the process: descriptors, the standard input, files.

Owns the reading of names in compiled code. A name that a function imports itself stands for the module of that name.
Runs nothing.
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
_STDIN_PATHS = {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
_CALL = "PRECALL" if "PRECALL" in dis.opmap else "CALL"
"""The first instruction of a call whose arguments are on the stack: Python 3.11 has two."""
_OF_PATHS = ("Path", "glob", "iterdir", "pathlib", "rglob")
"""Names in code that has paths as objects."""
_OF_TABLES = {"axis", "columns", "index", "mapper"}
"""Arguments of the `rename` of tables; a path's has none of them."""


def reads_descriptors(function: types.FunctionType) -> bool:
    """Returns true if a function reads on from descriptors, by functions of `os`."""
    return _names_any(function, os, _READ_ON)


def reads_stdin(function: types.FunctionType) -> bool:
    """Returns true if a function reads the standard input."""
    if any(map(_opens_stdin, codes_in(function.__code__))):
        return True
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
    if not names.isdisjoint(("rmdir", "unlink")):
        return True
    has_paths = not names.union(function.__globals__).isdisjoint(_OF_PATHS)
    if "replace" in names and has_paths and any(map(_replaces_file, codes_in(function.__code__))):
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
    """Returns the attributes that code names, each behind the name of its variable, or of an imported module."""
    found, imported, module = set[tuple[str, str]](), dict[str, str](), ""
    for one, other in itertools.pairwise(dis.get_instructions(code)):
        if one.opname == "IMPORT_NAME":
            module = one.argval
            if other.opname.startswith("STORE_"):  # `import os.path` stores `os`
                imported[other.argval] = module.partition(".")[0]
        if other.opname == "IMPORT_FROM":
            found.add((module, other.argval))
        is_name = one.opname.startswith("LOAD_") and type(one.argval) is str
        if is_name and other.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            found.add((imported.get(one.argval, one.argval), other.argval))
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def _opens_stdin(code: types.CodeType) -> bool:
    """Returns true if code opens the standard input by its path, or by its number."""
    if {"open", "fdopen", "Path"}.isdisjoint(code.co_names):
        return False
    if any(type(each) is str and each in _STDIN_PATHS for each in code.co_consts):
        return True
    return any(
        ((one.opname == "LOAD_GLOBAL" and one.argval == "open") or one.argval == "fdopen")
        and type(other.argval) is int
        and other.argval == 0
        and other.opname.startswith("LOAD_")
        for one, other in itertools.pairwise(dis.get_instructions(code))
    )


@functools.lru_cache(maxsize=1024)
def _replaces_file(code: types.CodeType) -> bool:
    """Returns true if code calls a `replace` as a path's, with one argument, or that of the class `Path`.

    That of a text has two or three, those of tables take dicts, and those of dates and data classes have keywords.
    """
    if ("Path", "replace") in _attributes(code):
        return True
    steps = list(dis.get_instructions(code))
    return any(
        step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        and step.argval == "replace"
        and steps[place - 1].argval != "self"
        and _has_one_argument(steps[place + 1 :])
        for place, step in enumerate(steps)
    )


def _has_one_argument(steps: list[dis.Instruction]) -> bool:
    """Returns true if the method that was just loaded is called with one positional argument, and no dict in braces."""
    depth, before = 0, ""
    for step in steps:
        if step.opname == _CALL and step.arg == depth:
            return depth == 1 and before not in ("KW_NAMES", "BUILD_MAP", "BUILD_CONST_KEY_MAP")
        depth += dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth < 0:
            break
        before = step.opname
    return False
