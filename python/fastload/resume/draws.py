"""`Draws`: what the order of an epoch is drawn from, noted right before the first draw.

Owns which generator a sampler draws from. Invariant: to look at it moves no generator.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import _InfiniteConstantSampler

from fastload.batching import PlannedBatchSampler
from fastload.batching.layers import attribute, layers
from fastload.draws.sampler import draw_seed, resumable
from fastload.resume.restored import Restored

__all__ = ["Draws", "epoch_of", "own_generator", "seed_from"]


_FIXED = (PlannedBatchSampler, _InfiniteConstantSampler, list, tuple, range)
"""Samplers that draw from no generator."""


class Draws:
    """The source of the order of one epoch: seeds, generators and the epoch of the sampler.

    Args:
        index_sampler: The sampler that a loader iterates.
        batched: True if it gives lists of indices.

    Attributes:
        order: The order, if it is that of torch's own samplers.
        sampler: The sampler that decides on it.
        follows: The outermost sampler that has an epoch; `sampler` if none has.
        generator: The generator of the outermost sampler that has its own; None if none has.
        epoch: The epoch of `follows` when the order began; None if it has none.
        is_noted: True if the order has begun.
        is_drawn: True if it was drawn, in this run or the one that is continued.
        is_eager: True if the sampler drew when its iterator was made.
    """

    def __init__(self, index_sampler: Any, *, batched: bool) -> None:
        self.order = resumable(index_sampler, batched=batched)
        self.is_noted = self.is_drawn = self.is_eager = False
        self._state: torch.Tensor | None = None
        self._seed: int | None = None
        if self.order is None:
            within = list(layers(index_sampler))
            self.sampler = within[-1]
            epochs = (each for each in within if epoch_of(each) is not None)
            self.follows = next(epochs, self.sampler)
            self._may_draw = not all(
                type(each) is BatchSampler or isinstance(each, _FIXED) for each in within
            )
        else:
            self.sampler = self.follows = self.order.sampler
            within = [self.sampler]
            self._may_draw = type(self.sampler) not in (DistributedSampler, SequentialSampler)
        self.generator = own_generator(within)
        self.epoch = epoch_of(self.follows)

    @property
    def is_seed(self) -> bool:
        """True if the sampler draws one seed from the global generator, and no more."""
        is_random = self.order is not None and type(self.sampler) is RandomSampler
        return is_random and self.sampler.generator is None

    def opened(self, before: torch.Tensor | None) -> None:
        """Notes the source of what the sampler drew when its iterator was made.

        Args:
            before: The state of its generator before that; None if the sampler is one that draws later.
        """
        if before is None or not self._may_draw:
            return
        now = (self.generator or torch.default_generator).get_state()
        self.is_eager = not torch.equal(now, before)
        self._state = before if self.is_eager else None

    def note(self) -> None:
        """Notes the source of the order's draws; called right before the first draw."""
        self.epoch, self.is_noted, self.is_drawn = epoch_of(self.follows), True, True
        if self._may_draw and self._state is None and self._seed is None:
            self._state = (self.generator or torch.default_generator).get_state()

    def settle(self) -> None:
        """Forgets the source of a sampler that did not draw from the global generator."""
        if self._state is None or self.generator is not None or self.order is not None:
            return
        if torch.equal(self._state, torch.default_generator.get_state()):
            self._state = None

    def put(self, restored: Restored) -> None:
        """Takes the source from a state."""
        self._seed = restored.start.seed
        self.is_drawn = restored.is_drawn
        if not restored.is_coming:
            self._may_draw, self.is_noted = False, True
            self.epoch = restored.sampler_epoch
        if not restored.is_coming or self.generator is None:
            self._state = restored.generator

    def seed(self) -> int | None:
        """Returns the seed that was drawn, if one was."""
        if self._seed is not None or not self.is_seed:
            return self._seed
        if self._state is None:
            return seed_from(torch.default_generator)
        self._seed = seed_from(self._state)
        return self._seed

    def state(self) -> torch.Tensor | None:
        """Returns the generator's state before the first draw; None where nothing or a seed was drawn."""
        if self.is_seed:
            return None
        if self._state is None and self._may_draw and not self.is_noted:
            return (self.generator or torch.default_generator).get_state()
        return self._state


def own_generator(samplers: Iterable[Any]) -> torch.Generator | None:
    """Returns the generator of the first of some samplers that has its own."""
    for sampler in samplers:
        generator = attribute(sampler, "generator")
        if generator is not None and isinstance(generator, torch.Generator):  # whose check is slow
            return generator
    return None


def epoch_of(sampler: Any) -> int | None:
    """Returns the epoch that a sampler was set to; None if it has no `set_epoch`."""
    if attribute(sampler, "set_epoch") is None:
        return None
    epoch = attribute(sampler, "epoch")
    return epoch if isinstance(epoch, int) else None


def seed_from(source: torch.Generator | torch.Tensor) -> int:
    """Returns the seed that is drawn next from a generator, or from its state; it is left as it is."""
    state = source.get_state() if isinstance(source, torch.Generator) else source
    scratch = torch.Generator()
    scratch.set_state(state)
    return draw_seed(scratch)
