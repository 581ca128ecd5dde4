"""The encoded image that waiting images are made from, and the sample that is being made meanwhile.

Owns when a whole image is decoded and kept, and what happens when a file turns out to be damaged: Pillow decides.
"""

import threading
from collections.abc import Callable

import torch
from PIL import Image

from fastload import _lib
from fastload.images.operations import Output
from fastload.machine import pillow
from fastload.pictures.steps import Step

__all__ = ["REFUSALS", "Late", "Making", "Source", "fail", "making"]

REFUSALS = (OSError, ValueError, RuntimeError)
"""The errors that native code raises for an image that is left to Pillow."""


class Late(BaseException):
    """Pixels cannot be made of a file that Pillow would have refused earlier: the sample has to be made again."""


class Making:
    """The sample that a thread makes, and the state of its images, whose pixels may be needed in other threads.

    Attributes:
        is_on: True if files that are opened wait.
        failed: True if one of them failed late.
        opened: Number of images that waited so far.
        sources: The sources of this sample's images.
    """

    def __init__(self) -> None:
        self.is_on = self.failed = False
        self.opened = 0
        self.sources: list[Source] = []


class _Thread(threading.local):
    def __init__(self) -> None:
        self.making = Making()


_thread = _Thread()


def making() -> Making:
    """Returns the state of the sample that this thread makes."""
    return _thread.making


class Source:
    """An encoded image, from which others are made.

    Args:
        data: The file's bytes.
        mode: The mode that it is decoded to.
        size: Width and height, as Pillow reports them.
        draft: The divisor of both sides, and whether grey is the file's luma; None for the whole image.
        reopen: Opens the file with Pillow, with the same draft.
        sample: The sample that the file was opened for.

    Attributes:
        data: The file's bytes.
        runs: Number of times that its pixels were made.

    Raises:
        OSError: It is not decoded natively.
        ValueError: Native code finds another size.
    """

    _used = _used_again = 0
    """Number of images whose pixels were made, and of those whose pixels were made more than once."""

    def __init__(
        self,
        data: bytes,
        mode: str,
        size: tuple[int, int],
        draft: tuple[int, bool] | None,
        reopen: Callable[[], Image.Image],
        sample: Making,
    ) -> None:
        self._native = _lib.Picture(data, mode, draft=draft, **pillow.switches())
        if self._native.size != size:
            msg = f"an image of {size} is one of {self._native.size} natively"
            raise ValueError(msg)
        self.data = data
        self._mode = mode
        self._reopen = reopen
        self._sample = sample
        if sample.is_on:
            sample.sources.append(self)
        self.runs = 0

    def pixels(self, steps: list[Step]) -> bytes:
        """Returns rows of pixels after these steps."""
        ops = [op for step in steps for op in step.ops]
        return self._native.pixels(ops, keep=self._keeps())

    def tensor(self, steps: list[Step], output: Output) -> torch.Tensor:
        """Returns the tensor that is written after these steps."""
        ops = [op for step in steps for op in step.ops]
        tensor: torch.Tensor = self._native.tensor(ops, output, keep=self._keeps())
        return tensor

    def by_pillow(self, steps: list[Step]) -> Image.Image:
        """Returns the image that Pillow makes.

        Raises:
            Exception: Pillow's own, where no sample is being made.
            Late: Pillow's own was raised while one is.
        """
        try:
            image = self._reopen().convert(self._mode)
            for step in steps:
                image = step.by_pillow(image)
            return image
        except Exception as error:
            fail(error, self._sample)
            raise

    def check(self) -> None:
        """Looks for damage in an image that nothing has been made of.

        Raises:
            Late: There is some.
        """
        try:
            self._native.pixels([("crop", (0, 0, 1, 1))], keep=True)
        except REFUSALS:
            self.by_pillow([])

    def _keeps(self) -> bool:
        """Returns true if the whole image is decoded and kept, because it, or most others, are reused."""
        self.runs += 1
        Source._used += self.runs == 1
        Source._used_again += self.runs == 2
        return self.runs > 1 or 2 * Source._used_again > Source._used


def fail(error: Exception, sample: Making) -> None:
    """Has a sample made again, if it is being made; returns in other threads than its own, which may not expect `Late`."""
    if sample.is_on:
        sample.failed = True
        if sample is making():
            raise Late from error
