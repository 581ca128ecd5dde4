"""Settings of the whole suite: hypothesis, and the sizes of `make test-tiny`.

`FASTLOAD_TEST_THREADS`, `FASTLOAD_TEST_DEPTH` and `FASTLOAD_TEST_CHUNK` force every native stream
to that many threads, batches in flight and samples per claim, whatever the loader asks for. Programs
that tests start run with their own. Left out are tests to which forced sizes mean nothing: those marked
`own_sizes`, which are about sizes, and those that made no stream in the ordinary run before and whose
module takes no size from `shared/compare.py`.
"""

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import hypothesis
import psutil
import pytest
import torch

from fastload import _lib
from tests.shared import compare, large_pages
from tests.shared.processes import is_of_memfd

# Seconds that torch waits for each worker of an iterator that is dropped, 5 by default: some do not end by themselves.
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.5

hypothesis.settings.register_profile(
    "fastload",
    deadline=None,  # timings are benches
    derandomize=bool(os.environ.get("CI")),
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("fastload")

# A shell has what it starts in the background ignore Ctrl-C, and so do the programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def forced_sizes() -> dict[str, int]:
    """Returns the keyword arguments of `Stream` that the environment forces."""
    sizes = {}
    if threads := os.environ.get("FASTLOAD_TEST_THREADS"):
        sizes |= dict.fromkeys(("threads", "fetch", "compute"), int(threads))
    if depth := os.environ.get("FASTLOAD_TEST_DEPTH"):
        sizes["depth"] = int(depth)
    if chunk := os.environ.get("FASTLOAD_TEST_CHUNK"):
        sizes["max_chunk"] = int(chunk)
    return sizes


_STREAMLESS = "fastload/without_streams"
"""Where pytest's cache keeps, for each folder, the tests that made no stream when they last ran at ordinary sizes."""

_made_streams: set[str] = set()


@pytest.fixture(autouse=True)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Applies the forced sizes to every stream that is made through `_lib.Stream`."""
    forced, stream, test = forced_sizes(), _lib.Stream, request.node.nodeid

    def sized(*arguments: Any, **keywords: Any) -> _lib.Stream:
        _made_streams.add(test)
        return stream(*arguments, **keywords | forced)

    monkeypatch.setattr(_lib, "Stream", sized)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips what needs a CUDA device where there is none; leaves out what forced sizes cannot change."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    if not forced_sizes():
        return
    cache = getattr(config, "cache", None)  # gone with -p no:cacheprovider
    streamless: set[str] = set()
    for folder in {_folder(item) for item in items} if cache is not None else ():
        streamless.update(cache.get(f"{_STREAMLESS}/{folder}", ()))
    left_out, kept = [], []
    for item in items:
        is_streamless = item.nodeid in streamless and not _takes_sizes(
            getattr(item, "module", None)
        )
        means_nothing = is_streamless or item.get_closest_marker("own_sizes")
        (left_out if means_nothing else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _folder(item: pytest.Item) -> str:
    """Returns the name of the folder in `tests` that a test is in; each has a run of its own."""
    return item.nodeid.split("/")[1]


def _takes_sizes(module: Any) -> bool:
    """Returns true if a module takes from `shared/compare.py` the sizes that it asks for."""
    return any(
        getattr(module, name, None) is getattr(compare, name)
        for name in ("SIZES", "THREADS", "DEPTH")
    )


def pytest_collection_finish() -> None:
    """Leaves what was imported and collected, some million objects, out of what collections look at; forks get cheap."""
    gc.collect()
    gc.freeze()
    large_pages.use_from_first_fork()


def pytest_unconfigure() -> None:
    """Lets the interpreter free everything as it ends: nanobind reports what is left."""
    gc.unfreeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remembers the tests that passed at ordinary sizes and made no stream."""
    cache = getattr(session.config, "cache", None)
    if forced_sizes() or session.testsfailed or cache is None:
        return
    for folder in {_folder(item) for item in session.items}:
        run = {item.nodeid for item in session.items if _folder(item) == folder}
        before = set(cache.get(f"{_STREAMLESS}/{folder}", ()))
        cache.set(f"{_STREAMLESS}/{folder}", sorted(before - run | run - _made_streams))


@pytest.fixture
def uninstalled() -> Iterator[None]:
    """Takes `fastload.accelerate` away again, which trainers install, and the state that Accelerate keeps."""
    yield
    from accelerate.state import GradientState

    import fastload.accelerate

    fastload.accelerate.uninstall()
    GradientState._reset_state()


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes away what macOS has not, where the library is built with its memory and sockets."""
    if not is_of_memfd():
        for name in ("eventfd", "memfd_create", "pidfd_open"):
            monkeypatch.delattr(os, name, raising=False)
        monkeypatch.setattr(psutil.Process, "memory_full_info", _denied)


def _denied(process: psutil.Process) -> Any:
    raise psutil.AccessDenied(process.pid)


@pytest.fixture
def parked() -> None:
    """Ends the native threads of earlier tests."""
    _lib.park()


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Seeds torch's global generator, so that a failure repeats; puts the old state back."""
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.random.set_rng_state(state)
