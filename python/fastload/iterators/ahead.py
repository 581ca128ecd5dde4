"""Number of batches that the native lane makes ahead, before anything is measured."""

from typing import Any, NamedTuple

from fastload import _lib
from fastload.draws.sampler import Order

__all__ = ["Ahead", "ahead"]

_DEEPER = 4
"""Factor by which native batches in flight may exceed `prefetch_factor * num_workers`."""


class Ahead(NamedTuple):
    """Limits of the batches in flight.

    Attributes:
        first: The initial limit.
        most: The maximum while tuning.
    """

    first: int
    most: int


def ahead(loader: Any, program: _lib.Program, order: Order | None) -> Ahead:
    """Returns how far ahead batches are made: as far as torch asks its workers to.

    Further if asking the sampler early has no visible effect: at once if the user did not set `prefetch_factor`
    and making a batch takes less time than waking a thread, because a thread that runs out of work sleeps for
    several such batches.

    Args:
        loader: The loader.
        program: The program that makes its samples.
        order: Its order, if that is one of torch's own.
    """
    usual: int = loader.prefetch_factor * int(loader.num_workers)
    if order is None or not order.is_private:
        return Ahead(usual, usual)
    is_cheap = program.is_cheap(order.batch_size or 1)
    most = _DEEPER * usual
    return Ahead(most if is_cheap and not loader._depth_is_chosen else usual, most)
