"""`GradMode`: torch's settings of the thread that iterates, which a forked worker process would inherit.

Torch keeps them by thread. Context variables, such as NumPy's handling of floating point errors, are
inherited when the thread starts.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Self

import torch

__all__ = ["GradMode"]


class GradMode(NamedTuple):
    """Torch's settings of a thread.

    Attributes:
        grad: True if operations record gradients.
        inference: True if inference mode is on.
    """

    grad: bool
    inference: bool

    @classmethod
    def current(cls) -> Self:
        """Returns the settings of the calling thread."""
        return cls(torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Applies the settings to the calling thread."""
        with contextlib.ExitStack() as stack:
            if self.inference:
                stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.set_grad_enabled(self.grad))
            yield
