"""`Generators`: torch's, numpy's legacy one and that of `random`, keyed together.

Owns where their states lie. All three are Mersenne Twisters, and to seed one anew takes longer than a small
sample; so its words are drawn from the key and put where it keeps them: torch's by its own `set_state`, the
others' in place. Where they lie is looked up at other objects of the same class, whose states are known. What
is not found, or is another kind of generator, is seeded.
"""

import _random
import ctypes
import functools
import itertools
import random
import struct
from typing import Any

import numpy as np
import torch

from fastload import _lib

__all__ = ["Generators", "is_packed", "seed_numpy"]

_WORDS = 624
_SPARE = 16
"""Bytes of numpy's spare number of a pair of normal ones."""
_ENDS = tuple(
    itertools.accumulate((5056, 4 * _WORDS + 4 + _SPARE, 4 * _WORDS + 4, struct.calcsize("<?d")))
)
"""The ends of the states of torch, numpy and Python in a packed state, and of Python's spare normal number."""


class Generators:
    """Three generators.

    Attributes:
        native: The native object that keys them.
        bits: The bit generator of numpy's.
    """

    def __init__(
        self, torchs: torch.Generator, numpys: np.random.RandomState, pythons: random.Random
    ) -> None:
        self._torch, self._numpy, self._python = torchs, numpys, pythons
        self.bits: Any = numpys._bit_generator
        self._capsule = self.bits.capsule
        given = {
            "torch": _of_torch(torchs),
            "numpy": _of_numpy(numpys),
            "python": _of_python(pythons),
        }
        self._given = given
        self._seeded = {name for name, value in given.items() if value is None}
        self.native = _lib.Generators(**given, others=self._seed if self._seeded else None)
        self._some: dict[frozenset[str], Any] = {}

    @property
    def is_current(self) -> bool:
        """True if numpy's generator still has the same bit generator, or one that stands in for it."""
        return self._numpy._bit_generator.capsule is self._capsule

    def only(self, names: frozenset[str] | None) -> Any:
        """Returns the native object that keys some of them: "torch", "numpy", "python"; None stands for all."""
        if names is None or self._seeded:
            return self.native
        if names not in self._some:
            some = {name: value for name, value in self._given.items() if name in names}
            self._some[names] = _lib.Generators(**some)
        return self._some[names]

    def save(self) -> Any:
        """Returns the states of the generators."""
        others = [
            self._numpy.get_state(legacy=False) if "numpy" in self._seeded else None,
            self._python.getstate() if "python" in self._seeded else self._python.gauss_next,  # type: ignore[attr-defined]
        ]
        with self._numpy._bit_generator.lock:
            saved = self.native.save()
        return self._torch.get_state(), saved, others

    def restore(self, saved: Any) -> None:
        """Restores saved states."""
        torchs, rest, (numpys, pythons) = saved
        self._torch.set_state(torchs)
        with self._numpy._bit_generator.lock:
            self.native.restore(rest)
        if numpys is not None:
            self._numpy.set_state(numpys)
        if "python" in self._seeded:
            self._python.setstate(pythons)
        else:
            self._python.gauss_next = pythons  # type: ignore[attr-defined]

    def pack(self) -> bytes | None:
        """Returns the states for another process; None if they were not found."""
        if self._seeded:
            return None
        torchs, rest, (_, spare) = self.save()
        has_spare = spare is not None
        words = ctypes.string_at(torchs.data_ptr(), torchs.nbytes)
        return b"".join([words, rest, struct.pack("<?d", has_spare, spare or 0.0)])

    def unpack(self, packed: bytes) -> None:
        """Restores packed states.

        Raises:
            ValueError: Bytes that are no such states.
        """
        if self._seeded or not is_packed(packed):
            msg = "the state of a worker's generators comes from another machine, or was changed"
            raise ValueError(msg)
        torchs, _, end, _ = _ENDS
        has_spare, spare = struct.unpack("<?d", packed[end:])
        state = torch.frombuffer(bytearray(packed[:torchs]), dtype=torch.uint8)
        self.restore((state, packed[torchs:end], (None, spare if has_spare else None)))

    def _seed(self, torchs: int, numpys: int, pythons: int) -> None:
        """Seeds the generators whose states were not found."""
        if "torch" in self._seeded:
            self._torch.manual_seed(torchs)
        if "numpy" in self._seeded:
            seed_numpy(self._numpy, numpys)
        if "python" in self._seeded:
            # what its own `seed` does, which asks longer what it was given
            _random.Random.seed(self._python, pythons)
            self._python.gauss_next = None  # type: ignore[attr-defined]


def is_packed(packed: bytes) -> bool:
    """Returns true if these are states of generators: their sizes, and counts that lie within the words."""
    words = 4 * _WORDS
    counts = [packed[begin + words : begin + words + 4] for begin in _ENDS[:2]]
    in_words = all(int.from_bytes(count, "little") <= _WORDS for count in counts)
    return len(packed) == _ENDS[-1] and in_words


def seed_numpy(generator: np.random.RandomState, seed: Any) -> None:
    """Seeds a legacy generator of numpy, also one over other bits, which numpy does not seed again."""
    try:
        generator.seed(seed)
    except TypeError:
        state: Any = type(generator._bit_generator)(seed).state
        generator.set_state({**state, "has_gauss": 0, "gauss": 0.0})


def _of_torch(generator: torch.Generator) -> Any:
    """Returns a generator's `set_state`, its arguments, and their address."""
    if not _knows_torchs_states():
        return None
    state = torch.Generator().get_state()
    return generator.set_state, (state,), state.data_ptr()


@functools.cache
def _knows_torchs_states() -> bool:
    """Returns true if a state of torch's is what `CPUGeneratorImplStateLegacy` was, with two more words.

    Format: aten/src/ATen/CPUGeneratorImpl.cpp of torch.
    """
    scratch = torch.Generator()
    state = scratch.manual_seed(5).get_state()
    if state.nbytes != 5056:
        return False
    words = state.view(torch.int64)
    if words[:3].tolist() != [5, 1 << 32 | 1, 0] or words[3] != 5 or words[627:].any():
        return False
    words[:3] = torch.tensor([7, 1 << 32 | _WORDS, 1], device="cpu")
    scratch.set_state(state)
    return scratch.initial_seed() == 7 and scratch.get_state().equal(state)


def _of_numpy(generator: np.random.RandomState) -> Any:
    """Returns the owner of a generator's words, where they lie, and where its spare normal number does."""
    bits: Any = generator._bit_generator
    offset = _offset_of_spare()
    if not isinstance(bits, np.random.MT19937) or offset is None:
        return None
    words = bits.ctypes.state_address
    state = bits.state["state"]
    lying = np.frombuffer(ctypes.string_at(words, 4 * _WORDS + 4), np.uint32)
    if lying[-1] != state["pos"] or not np.array_equal(lying[:-1], state["key"]):
        return None
    return (generator, bits), words, id(generator) + offset


@functools.cache
def _offset_of_spare() -> int | None:
    """Returns where in a `RandomState` its `has_gauss` is; eight bytes behind it is `gauss`."""
    scratch = np.random.RandomState(5)
    size, offset = type(scratch).__basicsize__, -1
    for _ in range(4):
        scratch.standard_normal()
        state: Any = scratch.get_state(legacy=False)
        memory = ctypes.string_at(id(scratch), size)
        if state["has_gauss"]:
            offset = memory.find(np.float64(state["gauss"]).tobytes()) - 8
        if (
            offset < 0
            or int.from_bytes(memory[offset : offset + 4], "little") != state["has_gauss"]
        ):
            return None
    return offset


def _of_python(generator: object) -> Any:
    """Returns a generator and where its count is, behind which its words are."""
    if not isinstance(generator, _random.Random) or not _knows_pythons_states():
        return None
    return generator, id(generator) + object.__basicsize__


@functools.cache
def _knows_pythons_states() -> bool:
    """Returns true if the memory of a `random.Random` begins with the count and the words."""
    scratch = random.Random(5)
    if type(scratch).__basicsize__ < object.__basicsize__ + 4 * _WORDS + 4:
        return False
    for draws in (0, 3, _WORDS):
        for _ in range(draws):
            scratch.getrandbits(32)
        memory = ctypes.string_at(id(scratch) + object.__basicsize__, 4 * _WORDS + 4)
        *words, count = scratch.getstate()[1]
        if np.frombuffer(memory, np.uint32).tolist() != [count, *words]:
            return False
    return True
