"""Settings of the whole suite: hypothesis, the sizes of `--sizes`, and what every test finds."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import psutil
import pytest
import torch
from _pytest.runner import runtestprotocol

from fastload import _lib
from tests.shared import large_pages
from tests.shared.processes import is_of_memfd
from tests.shared.sizes import FORCED, SIZES

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that repeats tests."""
    words = " and at ".join(FORCED)
    parser.addoption("--sizes", action="store_true", help=f"repeat what makes streams at {words}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test; with `--sizes` also at each of the forced sizes, if the test has asked for sizes."""
    if not item.config.option.sizes or item.get_closest_marker("own_sizes"):
        return None
    for name in ("", *FORCED):
        SIZES.use(name)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        runtestprotocol(item, nextitem=nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if not SIZES.were_used:
            break
    SIZES.use("")
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Names the forced sizes at which a test has failed."""
    report = yield
    if report.failed and SIZES.name:
        report.nodeid += f"[{SIZES.name}]"
    return report


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applies the forced sizes to every stream that is made through `_lib.Stream`."""
    stream = _lib.Stream

    def sized(*arguments: Any, **keywords: Any) -> _lib.Stream:
        return stream(*arguments, **keywords | SIZES.forced())

    monkeypatch.setattr(_lib, "Stream", sized)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a CUDA device where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish() -> None:
    """Leaves what was imported and collected, some million objects, out of what collections look at; forks get cheap."""
    gc.collect()
    gc.freeze()
    large_pages.use_from_first_fork()


def pytest_unconfigure() -> None:
    """Lets the interpreter free everything as it ends: nanobind reports what is left."""
    gc.unfreeze()


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
