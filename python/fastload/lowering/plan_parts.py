"""Programs of some leaves of a dataset, whose batches have a structure of their own.

Owns the leaves that are needed, the rule of each, and the values of a batch that they are to give. What is
not needed is not made. Refuses to know which collate function is meant.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fastload import _lib
from fastload.lowering import Leaf, Lowered, NotNative

__all__ = ["Parts", "Plan"]


class Plan(NamedTuple):
    """The native plan of batches.

    Attributes:
        program: The program that makes them.
        words: The collation of each leaf, in words.
        name: The name of the collation, for the user.
    """

    program: _lib.Program
    words: list[str]
    name: str


class Parts:
    """The leaves, rules and values of batches in the making of a plan.

    Args:
        lowered: The dataset.
    """

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        layout = lowered.program.layout()
        self._layout = {
            id(leaf): each for (_, leaf), each in zip(lowered.leaves, layout, strict=True)
        }
        self._leaves: list[tuple[Leaf, str]] = []
        self._rules: list[_lib.Rule] = []
        self._words: list[str] = []
        self._parts: list[tuple[int, str]] = []

    def shape(self, leaf: Leaf) -> tuple[int, ...] | None:
        """Returns the shape of every sample of a leaf; None if they differ or are known later."""
        return self._layout[id(leaf)][0]

    def dtype(self, leaf: Leaf) -> str:
        """Returns the name of a leaf's element type."""
        return self._layout[id(leaf)][1]

    def add(self, leaf: Leaf, rule: _lib.Rule, words: str, form: str | None = None) -> int:
        """Adds a leaf that is needed.

        Args:
            leaf: It.
            rule: The collation of its samples.
            words: That, for the user.
            form: In which its samples are seen; None: the leaf's own.

        Returns:
            Its number.
        """
        self._leaves.append((leaf, form or leaf.form))
        self._rules.append(rule)
        self._words.append(words)
        return len(self._leaves) - 1

    def __len__(self) -> int:
        return len(self._leaves)

    def part(self, number: int, what: str) -> Any:
        """Returns the placeholder of a value in the structure of a batch.

        Args:
            number: Of the leaf that it comes from.
            what: The part of that, as `_lib.Program.collated` has it.
        """
        self._parts.append((number, what))
        return _lib.Leaf(len(self._parts) - 1, "tensor")

    def plan(
        self,
        batch: Any,
        name: str,
        *,
        wrap: Callable[[Any], Any] | None = None,
        asks: bool = False,
    ) -> Plan:
        """Returns the plan of batches of this structure.

        Args:
            batch: With parts in place of values.
            name: The name of the collation.
            wrap: Called with each batch; returns what is handed over.
            asks: True if a batch that does not fit together is made in Python.

        Raises:
            NotNative: A rule that a leaf cannot have.
        """
        template = {place: _lib.Leaf(place, form) for place, (_, form) in enumerate(self._leaves)}
        try:
            program = _lib.Program([leaf.native for leaf, _ in self._leaves], template)
            program = program.collated(self._rules, self._parts, batch, wrap=wrap, asks=asks)
        except (TypeError, ValueError) as error:
            msg = f"{name} makes an error of every batch, or is Python here: {error}"
            raise NotNative(msg, "choose what fits the samples") from error
        words = {id(leaf): each for (leaf, _), each in zip(self._leaves, self._words, strict=True)}
        all_words = [words.get(id(leaf), "left out") for _, leaf in self._lowered.leaves]
        return Plan(program, all_words, name)
