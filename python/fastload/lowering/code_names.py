"""The names that compiled code looks up, and whether it is of a kind whose reach they tell.

Owns the reading of instructions. Refuses code that stores outside of its own variables, or imports. Runs nothing.
"""

import dis
import functools
import itertools
import types
from typing import NamedTuple

from fastload.lowering.code_effects import Chain, Maker, effects_of, single

__all__ = ["Names", "names_of"]

_REFUSED = (
    *("AWAIT", "ASYNC", "IMPORT", "SETUP", "BUILD_CLASS", "PRINT_EXPR"),
    *("STORE_GLOBAL", "STORE_NAME", "LOAD_NAME", "MATCH_CLASS"),
    *("DELETE_ATTR", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_SUBSCR", "DELETE_DEREF"),
)
"""Parts of the names of instructions that the code has not."""
_OF_GENERATORS = ("YIELD", "RETURN_GENERATOR", "GEN_START")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_LOADS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_LOOPS = ("FOR_ITER", "GET_YIELD_FROM_ITER")
_COSTLY = (
    *("BEFORE_WITH", "STORE_SUBSCR", "STORE_SLICE", "STORE_DEREF"),
    *("MAKE_FUNCTION", "CALL_FUNCTION_EX"),
)
_COSTLY_OPERATORS = ("**", "@")


class Names(NamedTuple):
    """The names in code.

    Attributes:
        of_module: Those of the module that the code is in, or built in, each with the attributes that are taken
            from it at once.
        of_values: Attributes of anything else.
        stored: Attributes that it sets.
        loops: Number of `for` loops, and of `yield from`.
        is_straight: True if no instruction jumps back.
        is_generator: True if it yields.
        is_quick: True if it has neither code within it, nor, loops apart, an instruction whose cost has no limit.
        only_reads: True if it changes nothing but what it has made by `makers`, and makes no functions, which a
            sample may hold.
        only_reads_by_index: The same if it is a method that is called with a number as its second argument, by others.
        makers: The functions that must make something new, or numbers that are new.
    """

    of_module: tuple[tuple[str, ...], ...]
    of_values: frozenset[str]
    stored: frozenset[str]
    loops: int
    is_straight: bool
    is_generator: bool
    is_quick: bool
    only_reads: bool
    only_reads_by_index: bool
    makers: frozenset[Maker]


@functools.lru_cache(maxsize=1024)
def names_of(code: types.CodeType) -> Names | None:
    """Returns the names in code, and in the code within it; None if an instruction is refused."""
    instructions = dis.get_instructions(code)
    read = list(single(each for each in instructions if each.opname != "EXTENDED_ARG"))
    names = [instruction.opname for instruction in read]
    if any(part in name for name in names for part in _REFUSED):
        return None
    chains = _chains(read)
    effects = effects_of(code, read, chains)
    known = effects.own_methods.union(
        *(range(place + 1, place + len(chain)) for place, chain in chains.items())
    )
    of_module = dict.fromkeys(chains.values())
    of_values = {
        each.argval
        for place, each in enumerate(read)
        if each.opname.startswith(_LOADS) and place not in known
    }
    nonlocals = [("STORE_DEREF", name) for name in code.co_freevars]
    stored = {
        each.argval
        for each in read
        if each.opname.startswith("STORE_ATTR") or (each.opname, each.argval) in nonlocals
    }
    makers = effects.makers
    inner = [constant for constant in code.co_consts if type(constant) is types.CodeType]
    only_reads = effects.only_own and all(each.co_name in _COMPREHENSIONS for each in inner)
    for each in map(names_of, inner):
        if each is None:
            return None
        only_reads = only_reads and each.only_reads
        of_module.update(dict.fromkeys(each.of_module))
        of_values |= each.of_values
        stored |= each.stored
        makers |= each.makers
    return Names(
        tuple(of_module),
        frozenset(of_values),
        frozenset(stored),
        loops=sum(name.startswith(_LOOPS) for name in names),
        is_straight=not any("JUMP_BACKWARD" in name for name in names),
        is_generator=any(part in name for name in names for part in _OF_GENERATORS),
        is_quick=not inner and not any(map(_is_costly, read)),
        only_reads=only_reads,
        only_reads_by_index=only_reads or (not inner and effects.only_own_by_index),
        makers=makers,
    )


def _chains(instructions: list[dis.Instruction]) -> dict[int, Chain]:
    """Returns, for each place where a global is loaded, its name and the attributes that are taken from it at once."""
    chains = {}
    for place, instruction in enumerate(instructions):
        if instruction.opname.startswith("LOAD_GLOBAL"):
            rest = itertools.takewhile(
                lambda each: each.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")),
                instructions[place + 1 :],
            )
            chains[place] = (instruction.argval, *(each.argval for each in rest))
    return chains


def _is_costly(instruction: dis.Instruction) -> bool:
    name = instruction.opname
    if name == "BINARY_OP":
        return any(each in instruction.argrepr for each in _COSTLY_OPERATORS)
    return any(part in name for part in _COSTLY)
