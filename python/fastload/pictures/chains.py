"""Chains of torchvision, v1 and v2, that end in numbers, of images that wait: their last steps are one table.

Between the steps of a `Compose`, nothing else sees the tensor. So where one turns an image into a tensor, and others
scale or normalize its elements, each byte is looked up in a table of what these steps make of it: the same numbers,
written once. The steps make the table themselves, of all 256 bytes.
"""

import copy
import operator
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import torch
from PIL import Image
from torch.nn.modules.module import _has_any_global_hook

from fastload import registry, transforms
from fastload.images.chain import FUNCTIONS, Chain, lower
from fastload.images.operations import Output
from fastload.pictures.waiting import Waiting, tensor
from fastload.registry import NotNative

__all__ = ["ending"]

_endings: weakref.WeakKeyDictionary[Any, "_Ending"] = weakref.WeakKeyDictionary()


def ending(compose: Any) -> Any:
    """Returns the replacement of a `Compose`, with its last steps in one; the same object where nothing is gained."""
    steps = compose.transforms
    is_torchvisions = type(compose).__module__.startswith("torchvision.")
    if not is_torchvisions or not isinstance(steps, list | tuple | torch.nn.ModuleList):
        return compose
    known = _endings.get(compose)
    if known is None or not known.is_of(steps):
        known = _endings[compose] = _Ending(steps)
    return compose if known.short is None else known.short


class _Ending:
    """The steps of a chain that make numbers of an image, one after the other.

    Args:
        steps: Of the whole chain.

    Attributes:
        short: Has the chain with these steps in one as its `transforms`; None if there are fewer than two, or
            their parameters cannot be compared.
    """

    def __init__(self, steps: Any) -> None:
        self._all = list(steps)
        self._functions = _functions()
        self._has_hook = _has_any_global_hook()  # type: ignore[no-untyped-call]
        first, end = _run(self._all)
        self._steps = self._all[first:end]
        self._states = [copy.deepcopy(vars(step)) for step in self._steps]
        if not self._are_unchanged():
            self._steps, self._states = [], []
        self._methods = [
            (type(step), name, getattr(type(step), name, None))
            for step in self._steps
            if (entry := registry.find("transform", step)) is not None
            for name in entry.methods
        ]
        self._tables: dict[tuple[str, torch.dtype], tuple[Output, Any] | None] = {}
        self.short: SimpleNamespace | None = None
        if len(self._steps) > 1:
            self.short = SimpleNamespace(transforms=[*self._all[:first], self, *self._all[end:]])

    def is_of(self, steps: Any) -> bool:
        """Returns true if these are the steps that the chain had, with the parameters that they had."""
        if len(steps) != len(self._all) or not all(map(operator.is_, steps, self._all)):
            return False
        if _has_any_global_hook() is not self._has_hook:  # type: ignore[no-untyped-call]
            return False
        are_original = (getattr(k, name, None) is method for k, name, method in self._methods)
        return self._are_unchanged() and all(are_original) and self._functions == _functions()

    def _are_unchanged(self) -> bool:
        try:
            return list(map(vars, self._steps)) == self._states
        except (RuntimeError, ValueError):  # tensors and arrays are not compared
            return False

    def __call__(self, image: Any) -> Any:
        """Returns the tensor that the steps make of an image."""
        # with a mode of torch, as a default device, the steps make their tensors elsewhere
        if (
            isinstance(image, Waiting)
            and min(image.size) > 1
            and not torch._C._len_torch_function_stack()
        ):
            key = image.mode, torch.get_default_dtype()
            if key not in self._tables:
                self._tables[key] = _table(self._steps, image.mode)
            table = self._tables[key]
            made = None if table is None else tensor(image, *table)
            if made is not None:
                return made
        for step in self._steps:
            image = step(image)
        return image


def _functions() -> list[list[Any]]:
    """Returns what torchvision's steps call, by module; to compare it takes 3 us."""
    modules = filter(None, map(sys.modules.get, FUNCTIONS))
    return [list(vars(module).values()) for module in modules]


def _table(steps: list[Any], mode: str) -> tuple[Output, Any] | None:
    """Returns what steps make of images of a mode, and the class of the tensor; None where native code does not write it."""
    if mode not in ("RGB", "L"):
        return None
    chain = Chain(3 if mode == "RGB" else 1, [])
    image: Any = Image.new(mode, (3, 2))
    try:
        for step in steps:
            lower(step, chain)
            image = step(image)
    except NotNative:
        return None
    values, shape = chain.values, (chain.channels, 2, 3)
    if values is None or values.requires_grad or tuple(image.shape) != shape:
        return None
    layouts = {(1, 3 * shape[0], shape[0]): "hwc", (6, 3, 1): "chw"}
    layout = layouts.get(image.stride())
    if layout is None:
        return None
    kind, _, *rest = transforms.table(values.as_subclass(torch.Tensor).reshape(-1, 256))
    return (kind, layout, *rest), chain.wrap


def _run(steps: list[Any]) -> tuple[int, int]:
    """Returns where the steps begin that make numbers of an image, and where they end; no steps for replaced code."""
    first, chain = 0, Chain(3, [])
    try:
        registry.check_functions("torchvision", *FUNCTIONS)
    except NotNative:
        return 0, 0
    for at, step in enumerate(steps):
        grown = chain.copy()
        try:
            lower(step, grown)
            maps = grown.values is not None and not grown.ops and not grown.random
        except NotNative:
            maps = False
        if maps:
            chain = grown
        elif chain.values is not None:
            return first, at
        else:
            first = at + 1
    return first, len(steps)
