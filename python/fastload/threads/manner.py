"""`Manner`: what a forked worker process would inherit from the thread that iterates.

Torch keeps it by thread whether it records gradients. Context variables, such as numpy's handling of
floating point errors, go with the thread's start.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Self

import torch

__all__ = ["Manner"]


class Manner(NamedTuple):
    """Torch's settings of a thread.

    Attributes:
        grad: Whether operations record gradients.
        inference: Whether inference mode is on.
    """

    grad: bool
    inference: bool

    @classmethod
    def here(cls) -> Self:
        """Returns the settings of the thread that asks."""
        return cls(torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    @contextlib.contextmanager
    def assumed(self) -> Iterator[None]:
        """Has the settings apply in this thread."""
        with contextlib.ExitStack() as stack:
            if self.inference:
                stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.set_grad_enabled(self.grad))
            yield
