"""Each worker thread has generators of its own, whichever way they are drawn from."""

import functools
import multiprocessing
import random
import threading
from random import choice, gauss, getrandbits, shuffle
from random import random as one
from random import seed as seed_python
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import rand, randn
from torch import initial_seed, manual_seed
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import Dataset, get_worker_info

from fastload.threads import torch_streams
from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import Drawn, assert_as_processes, globals_now, seed_all, threads

pytestmark = MANY_WORKERS


class Calls(Dataset[Any]):
    """What functions return."""

    def __init__(self, *functions: Any) -> None:
        self.functions = functions

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> Any:
        torch.rand(index)  # samples differ in what was drawn before
        return [function() for function in self.functions]


TENSOR = torch.linspace(0.1, 0.9, 12).reshape(1, 3, 4)


def recurrent(kind: Any) -> torch.Tensor:
    layers = kind(4, 5, num_layers=3, dropout=0.5)
    return layers(TENSOR)[0].detach()  # type: ignore[no-any-return]


def transformer() -> torch.Tensor:
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
    return layer(TENSOR).detach()  # type: ignore[no-any-return]


def gradients() -> torch.Tensor:
    leaf = TENSOR.clone().requires_grad_()
    functional.dropout(leaf).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


GIVEN = {
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(17),
    "randint": lambda: torch.randint(9, (3,)),
    "randperm": lambda: torch.randperm(5),
    "normal": lambda: torch.normal(TENSOR, TENSOR),
    "bernoulli": lambda: torch.bernoulli(TENSOR),
    "multinomial": lambda: torch.multinomial(TENSOR[0, 0], 2),
    "poisson": lambda: torch.poisson(TENSOR),
    "binomial": lambda: torch.binomial(9 * torch.ones(3), TENSOR[0, 0, :3]),
    "random_": lambda: torch.empty(3, dtype=torch.int64).random_(),
    "uniform_": lambda: torch.empty(3).uniform_(),
    "normal_": lambda: torch.empty(3).normal_(),
    "cauchy_": lambda: torch.empty(3).cauchy_(),
    "exponential_": lambda: torch.empty(3).exponential_(),
    "geometric_": lambda: torch.empty(3).geometric_(0.5),
    "log_normal_": lambda: torch.empty(3).log_normal_(),
    "bernoulli_": lambda: torch.empty(3).bernoulli_(0.5),
    "the default generator": lambda: torch.rand(3, generator=torch.default_generator),
    "beta": lambda: torch.distributions.Beta(1.0, 2.0).sample(),
    "gamma": lambda: torch.distributions.Gamma(1.0, 2.0).sample(),
    "rrelu": lambda: functional.rrelu(-TENSOR, training=True),
    "gumbel_softmax": lambda: functional.gumbel_softmax(TENSOR),
    "pooling": lambda: functional.fractional_max_pool2d(TENSOR, (1, 2), output_size=(2, 2)),
    "init": lambda: torch.nn.init.xavier_uniform_(torch.empty(2, 3)),
    "linear": lambda: torch.nn.Linear(2, 3).weight.detach(),
}

BENEATH = {
    "dropout": lambda: functional.dropout(TENSOR),
    "alpha_dropout": lambda: functional.alpha_dropout(TENSOR, training=True),
    "dropout2d": lambda: functional.dropout2d(TENSOR[None]),
    "module": lambda: torch.nn.Dropout(0.3)(TENSOR),
    "alpha_dropout of channels": lambda: functional.feature_alpha_dropout(TENSOR, training=True),
    "in place": lambda: functional.dropout(TENSOR.clone(), inplace=True),
    "dropout of what was pooled": lambda: functional.dropout(torch.nn.MaxPool2d(2)(TENSOR)),
    "native_dropout": lambda: torch.native_dropout(TENSOR, 0.3, True),
    "everything dropped": lambda: torch.native_dropout(TENSOR, 1.0, True),
    "gru": lambda: recurrent(torch.nn.GRU),
    "lstm": lambda: recurrent(torch.nn.LSTM),
    "transformer": transformer,
    "attention": lambda: functional.scaled_dot_product_attention(
        TENSOR, TENSOR, TENSOR, dropout_p=0.5
    ),
}

LIKE = {
    "rand_like": lambda: torch.rand_like(TENSOR),
    "randn_like": lambda: torch.randn_like(TENSOR),
    "randint_like": lambda: torch.randint_like(TENSOR, 9),
}
for name, draw in LIKE.items():  # which take a generator in newer versions of torch
    (GIVEN if getattr(torch, name) in torch_streams.GIVEN else BENEATH)[name] = draw


@pytest.mark.parametrize("draw", GIVEN.values(), ids=GIVEN)
def test_functions_that_take_a_generator(draw, caplog):
    seed_all()
    assert_as_processes(Calls(draw), epochs=1, batch_size=2)
    assert not caplog.records


def beneath(name: str) -> Any:
    return BENEATH[name]()


@pytest.fixture
def context() -> str:
    """How torch's workers start: from a clean process. Forked from one with threads that ran MKL, they can hang."""
    multiprocessing.set_forkserver_preload([__name__])
    return "forkserver"


@pytest.mark.parametrize("name", BENEATH)
def test_functions_whose_operators_draw(name, context, caplog):
    draw = functools.partial(beneath, name)
    assert_as_processes(Calls(draw), epochs=1, batch_size=2, context=context)
    assert not caplog.records


def test_dropout_that_gradients_go_through(caplog):
    """Torch refuses gradients in a forked process if its parent has begun threads for them, in whichever test."""
    assert_as_processes(Calls(gradients), epochs=1, batch_size=2, context="spawn")
    assert not caplog.records


def test_other_threads_keep_the_global_generator_during_dropout():
    """The worker waits within the call, before the operator after its draw."""
    torch.manual_seed(5)
    want = torch.rand(4)
    torch.manual_seed(1)

    inside, drawn = threading.Event(), threading.Event()

    class Pause(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.mul.Tensor:
                inside.set()
                assert drawn.wait(10)
            return func(*args, **(kwargs or {}))

    def dropped() -> Any:
        with Pause():
            return functional.dropout(TENSOR)

    # generator=: the loader's own draw leaves the global generator alone
    loader = threads(Calls(dropped), num_workers=1, prefetch_factor=1, generator=torch.Generator())
    batches = iter(loader)
    assert inside.wait(10)
    torch.manual_seed(5)
    first = torch.rand(2)
    drawn.set()
    for _ in batches:
        pass
    assert torch.equal(torch.cat([first, torch.rand(2)]), want)


_OTHERWISE = {
    *("_cudnn_rnn", "miopen_rnn", "_fused_dropout"),  # of accelerators, beneath what is named
    *("_efficient_attention_forward", "_flash_attention_forward"),
    "_flash_attention_forward_no_dropout_inplace",
    *("cauchy", "exponential", "geometric", "log_normal", "uniform"),  # no functions of Python
    *("normal_functional", "rrelu_with_noise", "rrelu_with_noise_", "rrelu_with_noise_functional"),
}


def test_every_operator_that_torch_calls_random_is_known():
    known = {each.__name__.rstrip("_") for each in torch_streams.GIVEN | torch_streams.BENEATH}
    tag = torch.Tag.nondeterministic_seeded
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        overloads = getattr(packet, "overloads", list)()
        if not any(tag in getattr(packet, each).tags for each in overloads):
            continue
        public = name.removeprefix("_").partition("dot_product")[0]
        assert name.rstrip("_") in known | _OTHERWISE or public == "scaled_" or name in _OTHERWISE


PYTHON = {
    "functions of random": lambda: (random.random(), random.gauss(0, 1), random.getrandbits(7)),
    "imported": lambda: (one(), gauss(0, 1), choice("abcdef"), getrandbits(40)),
    "shuffle": lambda: shuffle(numbers := list(range(9))) or numbers,
    "sample": lambda: random.sample(range(99), 5) + random.choices(range(99), k=5),
    "seeded": lambda: (seed_python(5), one())[1],
    "state": lambda: (state := random.getstate(), one(), random.setstate(state), one())[1::2],
}

NUMPY = {
    "functions of numpy.random": lambda: (np.random.rand(2), np.random.randn(), np.random.ranf()),
    "imported": lambda: (rand(2), randn(3), np.random.randn()),
    "hidden": lambda: np.random.mtrand._rand.normal(size=3),
    "shuffle": lambda: (np.random.permutation(9), np.random.choice(5, 3), np.random.bytes(3)),
    "seeded": lambda: (np.random.seed(5), np.random.randn(3))[1],
    "state": lambda: (s := np.random.get_state(), randn(), np.random.set_state(s), randn())[1::2],
}

TORCH = {
    "seeded": lambda: (manual_seed(5), torch.rand(3), initial_seed())[1:],
    "state": lambda: (s := torch.get_rng_state(), torch.rand(3), torch.set_rng_state(s))[1],
}


@pytest.mark.parametrize("draw", (PYTHON | NUMPY | TORCH).values(), ids=repr)
def test_ways_to_draw(draw, caplog):
    assert_as_processes(Calls(draw))
    assert not caplog.records


def seeded_as_torch_advises(worker: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def seeded_all(worker: int) -> None:
    random.seed(worker)
    np.random.seed(worker)
    torch.manual_seed(worker)
    torch.cuda.manual_seed_all(worker)


@pytest.mark.parametrize("start", [seeded_as_torch_advises, seeded_all])
def test_worker_init_fn_seeds_its_worker(start, caplog):
    assert_as_processes(Drawn(), worker_init_fn=start)
    assert not caplog.records


def test_what_moves_global_state_in_worker_init_fn_is_put_back(caplog):
    def start(worker: int) -> None:
        torch.default_generator.manual_seed(worker)

    seed_all()
    want = globals_now()
    seed_all()
    loader = threads(Drawn(), num_workers=2, worker_init_fn=start, generator=torch.Generator())
    iterator = iter(loader)
    assert all(map(torch.equal, globals_now()[:2], want[:2]))
    del iterator
    assert "worker_init_fn changed the state of torch's global generator" in caplog.text


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")
def test_what_moves_global_state_in_samples_is_said(caplog):
    scripted = torch.jit.script(beneath_python)
    list(threads(Calls(scripted), num_workers=1))
    assert "torch's global generator moved while next() waited" in caplog.text
    assert "lane='process'" in caplog.text


def beneath_python():
    return torch.rand([2])


@pytest.mark.skipif(not hasattr(torch, "thread_safe_generator"), reason="torch offers none yet")
def test_torchs_own_offer_of_generators_to_threads():
    class Own(Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            info = get_worker_info()
            assert info.worker_method == "thread"
            assert torch.thread_safe_generator() is info.rng.torch_generator
            assert info.rng.torch_generator.get_state().equal(torch.get_rng_state())
            return float(info.rng.numpy_generator.random()), info.rng.random_generator.random()

    assert len(list(threads(Own(), num_workers=2))) == 4
