"""`Restored`: a loaded state, as the iterator that continues from it needs it."""

from typing import Any, NamedTuple

import torch

from fastload.draws.sampler import Start

__all__ = ["Restored"]


class Restored(NamedTuple):
    """The position at which the next iterator begins, as a state says.

    Attributes:
        is_coming: True if the epoch has not begun; its draws are then made anew, with the values of the state.
        is_drawn: True if the order of the epoch was drawn: by the first batch, or in `iter` with workers of the user's.
        base_seed: That of the iterator.
        epoch: Of the iterator.
        taken: Batches before the first that is to come.
        left_out: Batches behind it that were handed over: with `in_order=False` they overtook others.
        start: The position where the order of one of torch's samplers continues.
        origin: Batches and samples before the first one that this number of ranks took.
        sampler_epoch: The epoch of the sampler; None if it has none.
        generator: The state of the generator that the order is drawn from; None if there is none.
        loader_generator: The state of the loader's `generator`; None if it has none, or the order is drawn from it.
        sampler_state: The state that the sampler's own `state_dict` returned; None if it has none.
        workers: The generators of the workers, by their numbers.
        datasets: The states of the workers' datasets, pickled, by the numbers of the workers.
        next_worker: The one that makes the next batch.
        to_drop: Batches that are made again and dropped, from where the generators were kept.
        from_workers: Number of these that each worker makes, where that is not the order of the workers.
        bad_samples: Indices of bad samples, and the bytes of their files; None for one that does not exist.
        draws_from: The source of the samples' draws: "keys", "workers" or "caller"; None if none was made.
        number: Of workers whose generators these are; 0 where they were not kept.
        unrepeated: The same position for iterators that make no batch again; None where it is this one, or where the
            sampler's state is that of the first batch to be made again.
    """

    is_coming: bool
    is_drawn: bool
    base_seed: int
    epoch: int
    taken: int
    left_out: tuple[int, ...]
    start: Start
    origin: tuple[int, int]
    sampler_epoch: int | None
    generator: torch.Tensor | None
    loader_generator: torch.Tensor | None
    sampler_state: Any
    workers: dict[int, bytes]
    datasets: dict[int, bytes]
    next_worker: int
    to_drop: int
    from_workers: tuple[int, ...]
    bad_samples: tuple[tuple[int, int | None], ...]
    draws_from: str | None
    number: int
    unrepeated: "Restored | None" = None

    @property
    def handed_over(self) -> int:
        """Number of batches of the epoch that were handed over."""
        return self.taken + self.to_drop + len(self.left_out)
