"""`Routed`: torch's random functions, drawing from the generator of a worker.

A mode of the thread that runs the worker. Functions that take `generator=` are given the worker's.
For those that do not (dropout, recurrent layers, attention) the operators beneath them are. The global
generator is never touched: other threads may draw from it or seed it meanwhile. Not seen are draws of
TorchScript and compiled code, and methods of `torch.default_generator` itself.
"""

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fastload.threads.streams import Streams

__all__ = ["BENEATH", "GIVEN", "Routed"]

_LIKE = ("rand_like", "randn_like", "randint_like")
"""Functions that take a generator in later versions of torch only."""


def _takes_generator(name: str) -> bool:
    return "generator" in getattr(torch.ops.aten, name).overloads()


GIVEN: frozenset[Any] = frozenset(
    [
        *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.poisson),
        *(torch.bernoulli, torch.multinomial, torch.binomial, torch.rrelu, torch.rrelu_),
        *(torch._standard_gamma, torch._sample_dirichlet),
        *(torch.Tensor.random_, torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.cauchy_),
        *(torch.Tensor.exponential_, torch.Tensor.geometric_, torch.Tensor.log_normal_),
        *(torch.Tensor.bernoulli, torch.Tensor.bernoulli_, torch.Tensor.multinomial),
        *(torch.nn.init.uniform_, torch.nn.init.normal_, torch.nn.init.kaiming_uniform_),
        *(getattr(torch, name) for name in _LIKE if _takes_generator(name)),
    ]
)
"""The functions that take `generator=`."""

BENEATH: frozenset[Any] = frozenset(
    [
        *(torch.dropout, torch.dropout_, torch.native_dropout),
        *(torch.feature_dropout, torch.feature_dropout_),
        *(torch.alpha_dropout, torch.alpha_dropout_),
        *(torch.feature_alpha_dropout, torch.feature_alpha_dropout_),
        *(torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu),
        torch._C._nn.scaled_dot_product_attention,
        *(getattr(torch, name) for name in _LIKE if not _takes_generator(name)),
    ]
)
"""The functions that draw, or may, and take no generator."""

_PLAIN = frozenset([torch.Tensor])


class Routed(TorchFunctionMode):
    """Has torch's random functions draw from a worker's generators, in the thread that enters it.

    Args:
        streams: The worker's generators.
        tell: Called with what was drawn from where it should not be.
    """

    def __init__(self, streams: Streams, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._streams = streams
        self._tell = tell

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, with the worker's generator if it draws."""
        kwargs = kwargs or {}
        if func in GIVEN:
            given = kwargs.get("generator")
            if given is None or given is torch.default_generator:
                device = _device(args, kwargs)
                if device.type != "meta":
                    kwargs = {**kwargs, "generator": self._streams.on(device)}
        elif func in BENEATH:
            return self._beneath(func, args, kwargs)
        elif getattr(func, "__module__", "") == "torch.nn.functional" and _PLAIN.issuperset(types):
            with self:
                return _body(func)(*args, **kwargs)
        return func(*args, **kwargs)

    def _beneath(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function whose operators draw."""
        if (device := _device(args, kwargs)).type != "cpu":
            name = getattr(func, "__name__", str(func))
            self._tell(f"torch's {name} draws from the training process's generator of {device}")
            return func(*args, **kwargs)
        with _Operators(self._streams.on()):
            return func(*args, **kwargs)


class _Operators(TorchDispatchMode):
    """Has the operators that a function of torch consists of draw from a generator."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls an operator, with the generator if it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if (body := _BODIES.get(func.overloadpacket)) is not None:
            return body(self._generator, *args, **kwargs)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            kwargs = {**kwargs, "generator": self._generator}
        return func(*args, **kwargs)


def _native_dropout(
    generator: torch.Generator, tensor: Any, p: float, *train: Any
) -> tuple[Any, Any]:
    if train == (False,):
        return tensor.clone(), torch.ones_like(tensor, dtype=torch.bool)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    mask = torch.empty(tensor.shape, dtype=torch.bool).bernoulli_(1 - p, generator=generator)
    return tensor.mul(mask).mul_(scale), mask


def _rand_like(generator: torch.Generator, tensor: Any, **layout: Any) -> Any:
    return torch.empty_like(tensor, **layout).uniform_(generator=generator)


def _randn_like(generator: torch.Generator, tensor: Any, **layout: Any) -> Any:
    return torch.empty_like(tensor, **layout).normal_(generator=generator)


def _randint_like(generator: torch.Generator, tensor: Any, *bounds: int, **layout: Any) -> Any:
    return torch.empty_like(tensor, **layout).random_(*(0, *bounds)[-2:], generator=generator)


_BODIES: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.native_dropout: _native_dropout,
    torch.ops.aten.rand_like: _rand_like,
    torch.ops.aten.randn_like: _randn_like,
    torch.ops.aten.randint_like: _randint_like,
}
"""Operators that take no generator, as torch's kernels for the CPU are written."""


def _device(args: Any, kwargs: Any) -> torch.device:
    """Returns the device on which a function draws."""
    if (device := kwargs.get("device")) is not None:
        return torch.device(device)
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, torch.Tensor):
            return argument.device
    return torch.get_default_device()


@functools.cache
def _body(function: Any) -> Any:
    """Returns a function of torch written in Python, which does not check for overrides.

    A mode does not see the functions that are called beneath one that it has seen. Pooling chooses between two such
    functions, which lie in its closure.
    """
    blind = {
        name: _no_override for name in function.__globals__ if name.startswith("has_torch_function")
    }
    body = FunctionType(
        function.__code__,
        {**function.__globals__, **blind},
        function.__name__,
        function.__defaults__,
        function.__closure__ and tuple(map(_blind, function.__closure__)),
    )
    body.__kwdefaults__ = function.__kwdefaults__
    return body


def _blind(cell: CellType) -> CellType:
    """Returns a cell of a closure, with the body of its function if it holds one of torch's."""
    held = cell.cell_contents
    is_torchs = getattr(held, "__module__", "") == "torch.nn.functional"
    return CellType(_body(held)) if is_torchs and isinstance(held, FunctionType) else cell


def _no_override(*_: Any) -> bool:
    return False
