"""How far ahead the native lane makes batches, before anything is measured."""

from typing import Any, NamedTuple

from fastload import _lib
from fastload.draws.sampler import Order

__all__ = ["Ahead", "ahead"]

_DEEPER = 4
"""How much deeper than `prefetch_factor * num_workers` native batches may be in flight."""


class Ahead(NamedTuple):
    """How many batches may be in flight.

    Attributes:
        first: At first.
        most: Later, where they are tuned.
    """

    first: int
    most: int


def ahead(loader: Any, program: _lib.Program, order: Order | None) -> Ahead:
    """Returns how far ahead batches are made: as far as torch asks its workers to.

    Further where nobody can tell from the sampler how far ahead it is asked: at once where nobody chose
    `prefetch_factor` and a batch is sooner made than a thread is woken, for one that finds nothing to do
    sleeps for several such batches.

    Args:
        loader: The loader.
        program: What makes its samples.
        order: Its order, if that is one of torch's own.
    """
    usual: int = loader.prefetch_factor * int(loader.num_workers)
    if order is None or not order.is_private:
        return Ahead(usual, usual)
    is_cheap = program.is_cheap(order.batch_size or 1)
    most = _DEEPER * usual
    return Ahead(most if is_cheap and not loader._depth_is_chosen else usual, most)
