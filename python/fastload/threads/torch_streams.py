"""`Routed`: torch's random functions, drawing from the generator of a worker.

A mode of the thread that runs the worker. Functions that take `generator=` are given the worker's.
Those that do not (dropout, recurrent layers, attention) are lent the global generator with the
worker's state: the samples are the worker's and the state is put back, but a draw of another thread
meanwhile would not be in order; which is logged once. Not seen are draws of TorchScript and compiled
code, and methods of `torch.default_generator` itself.
"""

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fastload.threads.streams import Streams

__all__ = ["GIVEN", "LENT", "LENT_LOCK", "Routed"]

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

LENT: frozenset[Any] = frozenset(
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
"""The functions that draw, or may, from the global generator alone."""

LENT_LOCK = threading.RLock()

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
        elif func in LENT:
            return self._lend(func, args, kwargs)
        elif getattr(func, "__module__", "") == "torch.nn.functional" and _PLAIN.issuperset(types):
            with self:
                return _body(func)(*args, **kwargs)
        return func(*args, **kwargs)

    def _lend(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function that draws from the global generator."""
        name = getattr(func, "__name__", str(func))
        if (device := _device(args, kwargs)).type != "cpu":
            self._tell(f"torch's {name} draws from the training process's generator of {device}")
            return func(*args, **kwargs)
        ours, shared = self._streams.on(), torch.default_generator
        with LENT_LOCK:
            kept, before = shared.get_state(), ours.get_state()
            shared.set_state(before)
            try:
                return func(*args, **kwargs)
            finally:
                ours.set_state(after := shared.get_state())
                shared.set_state(kept)
                if not torch.equal(before, after):
                    self._tell(
                        f"torch's {name} takes no generator; while a worker thread calls it, "
                        "another thread that draws from torch's global generator gets the worker's"
                    )


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
    """Returns a function of torch written in Python, which asks nobody whether it is overridden.

    A mode does not see the functions that are called beneath one that it has seen.
    """
    blind = {
        name: _nobody for name in function.__globals__ if name.startswith("has_torch_function")
    }
    body = FunctionType(
        function.__code__,
        {**function.__globals__, **blind},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    body.__kwdefaults__ = function.__kwdefaults__
    return body


def _nobody(*_: Any) -> bool:
    return False
