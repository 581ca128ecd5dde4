"""The names that compiled code looks up, and whether it is of a kind whose reach they tell.

Owns the reading of instructions. Refuses code that stores outside of its own variables, imports, or enters
contexts. Runs nothing.
"""

import dis
import functools
import itertools
import types
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Names", "names_of"]

_REFUSED = (
    *("SEND", "AWAIT", "ASYNC", "WITH", "IMPORT", "SETUP", "BUILD_CLASS", "PRINT_EXPR"),
    *("STORE_GLOBAL", "STORE_NAME", "LOAD_NAME", "MATCH_CLASS", "YIELD_FROM"),
    *("DELETE_ATTR", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_SUBSCR", "DELETE_DEREF"),
)
"""Parts of the names of instructions that the code has not."""
_OF_GENERATORS = ("YIELD", "RETURN_GENERATOR", "GEN_START")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_LOADS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_STORES = ("STORE_SUBSCR", "STORE_SLICE")
_IN_PLACE = {"out", "copy", "inplace"}
"""Arguments that name what is changed, or have it changed."""
_NEW = ("LOAD_CONST", "LOAD_SMALL_INT", "BINARY_OP")
"""Instructions whose results belong to the code alone, or cannot be changed."""
_COSTLY = (*_STORES, "STORE_DEREF", "MAKE_FUNCTION", "CALL_FUNCTION_EX")
_COSTLY_OPERATORS = ("**", "@")


class Names(NamedTuple):
    """The names in code.

    Attributes:
        of_module: Those of the module that the code is in, or built in, each with the attributes that are taken
            from it at once.
        of_values: Attributes of anything else.
        stored: Attributes that it sets.
        loops: Number of `for` loops.
        is_straight: True if no instruction jumps back.
        is_generator: True if it yields.
        is_quick: True if it has neither code within it, nor, loops apart, an instruction whose cost has no limit.
        only_reads: True if it stores no entries, changes nothing in place, and makes no functions, which a sample
            may hold.
    """

    of_module: tuple[tuple[str, ...], ...]
    of_values: frozenset[str]
    stored: frozenset[str]
    loops: int
    is_straight: bool
    is_generator: bool
    is_quick: bool
    only_reads: bool


@functools.lru_cache(maxsize=1024)
def names_of(code: types.CodeType) -> Names | None:
    """Returns the names in code, and in the code within it; None if an instruction is refused."""
    read = list(_instructions(code))
    names = [instruction.opname for instruction, _ in read]
    if any(part in name for name in names for part in _REFUSED):
        return None
    of_module = dict.fromkeys(chain for _, chain in read if chain)
    of_values, stored = _attributes(read, _LOADS), _attributes(read, ("STORE_ATTR",))
    inner = [constant for constant in code.co_consts if type(constant) is types.CodeType]
    plain = [instruction for instruction, _ in read]
    only_reads = (
        not any(_may_change(plain, place) for place in range(len(plain)))
        and all(each.co_name in _COMPREHENSIONS for each in inner)
        and not _changes_in_place(code, plain)
    )
    for each in map(names_of, inner):
        if each is None:
            return None
        only_reads = only_reads and each.only_reads
        of_module.update(dict.fromkeys(each.of_module))
        of_values |= each.of_values
        stored |= each.stored
    return Names(
        tuple(of_module),
        frozenset(of_values),
        frozenset(stored),
        loops=sum(name.startswith("FOR_ITER") for name in names),
        is_straight=not any("JUMP_BACKWARD" in name for name in names),
        is_generator=any(part in name for name in names for part in _OF_GENERATORS),
        is_quick=not inner and not any(_is_costly(instruction) for instruction, _ in read),
        only_reads=only_reads,
    )


def _instructions(code: types.CodeType) -> Iterator[tuple[dis.Instruction, tuple[str, ...]]]:
    """Yields the instructions; those that load a global with its name and the attributes taken from it at once."""
    instructions = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    chain: list[str] = []
    loads = None
    for instruction in instructions:
        if loads is not None and instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            chain.append(instruction.argval)
            continue
        if loads is not None:
            yield loads, tuple(chain)
            loads = None
        if instruction.opname.startswith("LOAD_GLOBAL"):
            loads, chain = instruction, [instruction.argval]
        else:
            yield instruction, ()


def _attributes(
    read: list[tuple[dis.Instruction, tuple[str, ...]]], operations: tuple[str, ...]
) -> set[str]:
    return {each.argval for each, _ in read if each.opname.startswith(operations)}


def _may_change(instructions: list[dis.Instruction], place: int) -> bool:
    """Returns true if an instruction stores an entry, or spreads arguments, of which one may name what is changed."""
    name = instructions[place].opname
    if name == "CALL_FUNCTION_EX" and instructions[place].arg == 0 and place > 1:  # without `**`
        called = instructions[place - 2]
        return not called.opname.startswith("LOAD_GLOBAL") or called.argval != "zip"
    return name.startswith((*_STORES, "CALL_FUNCTION_EX"))


def _changes_in_place(code: types.CodeType, instructions: list[dis.Instruction]) -> bool:
    """Returns true if an operator such as `+=`, or an argument, may change what was there before."""
    if any(type(each) is tuple and not _IN_PLACE.isdisjoint(each) for each in code.co_consts):
        return True
    count = code.co_argcount + code.co_kwonlyargcount
    given = set(code.co_varnames[:count])
    steps = list(itertools.pairwise(instructions))
    for before, each in steps:
        stored = _stored(each)
        given.update(stored if not before.opname.startswith(_NEW) else stored[1:])
    return any(
        before.opname == "BINARY_OP"
        and before.argrepr.endswith("=")
        and not (_stored(each) and given.isdisjoint(_stored(each)))
        for before, each in steps
    )


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    """Returns the local variables that an instruction sets, the first of them to the last value."""
    name = instruction.opname
    if not name.startswith("STORE_FAST"):
        return ()
    if type(instruction.argval) is not tuple:
        return (instruction.argval,)
    return instruction.argval if name == "STORE_FAST_STORE_FAST" else instruction.argval[:1]


def _is_costly(instruction: dis.Instruction) -> bool:
    name = instruction.opname
    if name == "BINARY_OP":
        return any(each in instruction.argrepr for each in _COSTLY_OPERATORS)
    return any(part in name for part in _COSTLY)
