"""What compiled code changes, and whether it has made that itself.

Owns the reading of what instructions store. A local variable is *own* if all that is ever stored in it was just
made: by a display, a comprehension, or a function that makes something new. To change an own variable, its
entries, or itself by its methods leaves everything else as it was. Refuses all else.
"""

import dis
import inspect
import itertools
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fastload.lowering.known_functions import CHANGES

__all__ = ["IN_PLACE", "Chain", "Effects", "Maker", "effects_of", "single"]

_STORES = ("STORE_SUBSCR", "STORE_SLICE")
IN_PLACE = {"out", "copy", "inplace"}
"""Arguments that name what is changed, or have it changed."""
_UNCHANGING = ("LOAD_CONST", "LOAD_SMALL_INT")
_KINDS = ("", "new", "container", "array")
"""What is stored in a variable: anything, anything new, a container of its own making, what a maker returned."""
_DISPLAYS = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_PARTS = ("CALL", "BINARY_SUBSCR", "BINARY_SLICE", "BINARY_OP", "LOAD_ATTR", "LOAD_METHOD")
"""Instructions that make one value of another: of an array of numbers, a new value or a view of it."""

Chain = tuple[str, ...]


class Maker(NamedTuple):
    """A global whose results code changes.

    Attributes:
        chain: Its name, and the attributes that are taken from it at once.
        is_of_numbers: True if its results must be arrays of numbers, as parts of them are changed, too.
    """

    chain: Chain
    is_of_numbers: bool


class Effects(NamedTuple):
    """What code changes.

    Attributes:
        only_own: True if it changes nothing but what is its own, if all of `makers` make something new.
        only_own_by_index: The same if it is a method that is called with a number as its second argument, by others.
        makers: The globals whose results it changes.
        own_methods: Places of instructions that take a method that changes an own variable from it.
    """

    only_own: bool
    only_own_by_index: bool
    makers: frozenset[Maker]
    own_methods: frozenset[int]


def effects_of(
    code: types.CodeType, instructions: Sequence[dis.Instruction], chains: Mapping[int, Chain]
) -> Effects:
    """Reads what code changes.

    Args:
        code: The code.
        instructions: Its instructions.
        chains: For each place where a global is loaded, its name and the attributes that are taken from it at once.
    """
    reader = _Reader(code, instructions, chains)
    places = range(len(instructions))
    # calls have arguments that name what is changed, or have it changed
    names_changed = any(
        type(each) is tuple and not IN_PLACE.isdisjoint(each) for each in code.co_consts
    )
    only_own = by_index = not names_changed and all(map(reader.is_own_change, places))
    if not only_own and not names_changed and _is_of_attributes(code, instructions):
        reader = _Reader(code, instructions, chains, number=code.co_varnames[1])
        by_index = all(map(reader.is_own_change, places))
    methods = frozenset(filter(reader.is_own_method, places))
    return Effects(only_own, by_index, frozenset(reader.relied_on), methods)


class _Reader:
    def __init__(
        self,
        code: types.CodeType,
        instructions: Sequence[dis.Instruction],
        chains: Mapping[int, Chain],
        number: str | None = None,
    ) -> None:
        self._holds_objects = not {"object", "O"}.isdisjoint(
            [*(each for each in code.co_consts if type(each) is str), *code.co_names]
        )
        self._instructions = instructions
        self._chains = chains
        self.relied_on: set[Maker] = set()
        self._kinds: dict[str, str] = {}
        self._makers: dict[str, set[Maker]] = {}
        spread = [
            code.co_flags & flag != 0 for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
        ]
        given = code.co_argcount + code.co_kwonlyargcount + sum(spread)
        self._kinds.update(dict.fromkeys(code.co_varnames[:given], ""))
        self._number = None
        if number is not None and not self._is_stored_plainly(number):
            self._number, self._kinds[number] = number, "new"
        for place, each in enumerate(instructions):
            if (name := _stored(each)) is not None:
                self._note(name, place)

    def _is_stored_plainly(self, name: str) -> bool:
        """Returns true if a variable is set other than by `+=` or the like on itself."""
        return any(
            _stored(each) == name and not self._is_augmented(place)
            for place, each in enumerate(self._instructions)
        )

    def _note(self, name: str, place: int) -> None:
        """Notes what an instruction stores in a variable."""
        if self._is_augmented(place):
            return  # what was there before, changed
        kind, maker = "", None
        if not self._instructions[place].is_jump_target:  # else it is one of several values
            kind, maker = self._made(place - 1)
        self._kinds[name] = min(kind, self._kinds.get(name, kind), key=_KINDS.index)
        if maker is not None:
            self._makers.setdefault(name, set()).add(maker)

    def _is_augmented(self, place: int) -> bool:
        """Returns true if an instruction stores a variable after `+=` or the like on itself."""
        if place == 0 or not _is_in_place(self._instructions[place - 1]):
            return False
        second = self._begin(place - 2)
        first = None if second is None else self._instructions[second - 1]
        return first is not None and _loaded(first) == _stored(self._instructions[place])

    def _made(self, last: int) -> tuple[str, Maker | None]:
        """Returns what kind of new thing an expression makes, and by which global; an empty kind if it may not be new."""
        if self._is_inlined(last):
            return "container", None
        begin = self._begin(last)
        if begin is None:
            return "", None
        first, end = self._instructions[begin], self._instructions[last]
        is_number = self._number is not None and _loaded(end) == self._number
        if begin == last and (end.opname in _UNCHANGING or is_number):
            return "new", None
        if end.opname.startswith(_DISPLAYS) or (
            first.opname.startswith(_DISPLAYS) and end.opname.startswith(("LIST_", "SET_", "DICT_"))
        ):
            return "container", None
        while first.opname in ("LOAD_CLOSURE", "BUILD_TUPLE") and begin < last:
            begin += 1
            first = self._instructions[begin]
        is_code = isinstance(first.argval, types.CodeType)
        if is_code and end.opname == "CALL" and first.argval.co_name in _COMPREHENSIONS:
            return "container", None
        if end.opname == "BINARY_OP" and not _is_in_place(end):
            return "new", None  # or an array, which is new
        chain = self._chains.get(begin)
        if chain is None or not end.opname.startswith(_PARTS):
            return "", None
        heights = itertools.accumulate(map(_effect, self._instructions[begin : last + 1]))
        alone = [place for place, height in enumerate(heights, begin) if height == 1]
        parts = [place for place in alone if place >= begin + len(chain)]
        if not all(self._instructions[place].opname.startswith(_PARTS) for place in parts):
            return "", None  # one of several values
        if not parts or not self._instructions[parts[0]].opname.startswith("CALL"):
            return "", None  # the global itself
        return "array", Maker(chain, is_of_numbers=len(parts) > 1)

    def _is_inlined(self, last: int) -> bool:
        """Returns true if an instruction is the last of a comprehension that is no function of its own (3.12)."""
        instructions, place = self._instructions, last
        while instructions[place].opname in ("STORE_FAST", "SWAP", "POP_TOP", "POP_ITER") and place:
            place -= 1  # its variables have what they had before
        if instructions[place].opname != "END_FOR":
            return False
        end = instructions[place].offset
        loops = (
            at
            for at, each in enumerate(instructions)
            if each.opname == "FOR_ITER" and each.argval == end
        )
        loop = next(loops, 0)
        before = [each.opname for each in instructions[max(0, loop - 2) : loop]]
        return len(before) == 2 and before[0].startswith(_DISPLAYS) and before[1] == "SWAP"

    def _begin(self, last: int) -> int | None:
        """Returns the first instruction of the expression that ends with one; None if it has branches."""
        missing = 1
        for place in range(last, -1, -1):
            each = self._instructions[place]
            if "JUMP" in each.opname or each.opname.startswith(
                ("FOR_ITER", "STORE", "POP", "RETURN", "YIELD")
            ):
                return None
            missing -= _effect(each)
            if missing <= 0:
                return place if missing == 0 else None
            if each.is_jump_target:
                return None
        return None

    def is_own_change(self, place: int) -> bool:
        """Returns true if an instruction changes nothing, or what is the code's own."""
        each = self._instructions[place]
        if each.opname.startswith("CALL_FUNCTION_EX"):  # whose arguments may name what is changed
            called = self._instructions[place - 2] if each.arg == 0 and place > 1 else each
            return called.opname.startswith("LOAD_GLOBAL") and called.argval == "zip"
        if each.opname.startswith(_STORES):
            return self._is_own(self._changed_entry(place))
        if not _is_in_place(each):
            return True
        if (name := _stored(self._instructions[place + 1])) is not None:
            return self._is_own(name)
        entry = self._augmented_entry(place)
        is_array = self._kinds.get(entry or "") == "array" and not self._holds_objects
        return is_array and self._is_own(entry, is_of_numbers=True)

    def is_own_method(self, place: int) -> bool:
        """Returns true if an instruction takes a method that changes an own variable."""
        each = self._instructions[place]
        if not place or not each.opname.startswith(("LOAD_METHOD", "LOAD_ATTR")):
            return False
        if each.argval not in CHANGES:
            return False
        name = self._loaded_before(place)
        return self._kinds.get(name or "") in ("array", "container") and self._is_own(name)

    def _is_own(self, name: str | None, *, is_of_numbers: bool = False) -> bool:
        if name is None or not self._kinds.get(name):
            return False
        makers = self._makers.get(name, set())
        self.relied_on |= {
            Maker(each.chain, each.is_of_numbers or is_of_numbers) for each in makers
        }
        return True

    def _loaded_before(self, place: int) -> str | None:
        """Returns the local variable that is loaded just before an instruction, however code gets there."""
        if place == 0 or self._instructions[place].is_jump_target:
            return None
        return _loaded(self._instructions[place - 1])

    def _changed_entry(self, place: int) -> str | None:
        """Returns the variable whose entry or slice an instruction stores; None if it is no variable's."""
        instructions = self._instructions
        if (
            place >= 3
            and instructions[place - 1].opname == "SWAP"
            and instructions[place - 2].opname == "SWAP"
        ):
            return self._augmented_entry(place - 3)
        begin = self._begin(place - 1)
        if begin and instructions[place].opname == "STORE_SLICE":
            begin = self._begin(begin - 1)
        return self._loaded_before(begin) if begin else None

    def _augmented_entry(self, operator: int) -> str | None:
        """Returns the variable of whose entry an operator such as `+=` changes the value."""
        begin = self._begin(operator - 1)
        if begin is None or begin < 4:
            return None
        copies = [each.opname for each in self._instructions[begin - 3 : begin]]
        if copies != ["COPY", "COPY", "BINARY_SUBSCR"]:
            return None
        key = self._begin(begin - 4)
        return self._loaded_before(key) if key else None


def single(instructions: Iterable[dis.Instruction]) -> Iterator[dis.Instruction]:
    """Yields instructions; those that do two things with local variables (3.13) as two."""
    for each in instructions:
        parts = re.findall("(LOAD|STORE)_FAST", each.opname)
        if len(parts) < 2:
            yield each
            continue
        for part, name in zip(parts, each.argval, strict=True):
            yield each._replace(
                opname=f"{part}_FAST", opcode=dis.opmap[f"{part}_FAST"], arg=0, argval=name
            )


def _effect(instruction: dis.Instruction) -> int:
    return dis.stack_effect(instruction.opcode, instruction.arg, jump=False)


def _is_in_place(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")


def _loaded(instruction: dis.Instruction) -> str | None:
    """Returns the local variable that an instruction loads."""
    return instruction.argval if instruction.opname.startswith("LOAD_FAST") else None


def _stored(instruction: dis.Instruction) -> str | None:
    """Returns the local variable that an instruction sets."""
    return instruction.argval if instruction.opname == "STORE_FAST" else None


def _is_of_attributes(code: types.CodeType, instructions: Sequence[dis.Instruction]) -> bool:
    """Returns true if a method of two arguments takes attributes of its object, and does nothing else with that."""
    if code.co_argcount != 2 or code.co_cellvars:
        return False
    after = itertools.pairwise(instructions)
    return all(
        following.opname.startswith(("LOAD_ATTR", "LOAD_METHOD"))
        for each, following in after
        if _loaded(each) == code.co_varnames[0]
    )
