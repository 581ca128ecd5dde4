"""Settings of the whole suite: hypothesis, the sizes of `--sizes`, fixtures."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import psutil
import pytest
import torch

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


_IS_RUNNING = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that repeats tests."""
    words = " and at ".join(FORCED)
    parser.addoption("--sizes", action="store_true", help=f"repeat what makes streams at {words}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test; with `--sizes` again at each of the forced sizes, if it passed and has read any.

    Each run has a time limit of its own.
    """
    is_repeated = item.config.getoption("sizes") and not item.get_closest_marker("own_sizes")
    if not is_repeated or item.stash.get(_IS_RUNNING, False):
        return None
    item.stash[_IS_RUNNING] = True
    failed = item.session.testsfailed
    for name in ("", *FORCED):
        SIZES.force(name)
        if name:
            _lib.park()  # its threads, which may be more
        item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        if item.session.testsfailed > failed or not (name or SIZES.were_read):
            break
    SIZES.force("")
    item.stash[_IS_RUNNING] = False
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Names the forced sizes at which a test has failed."""
    report = yield
    if SIZES.name:
        report.sections.append(("Sizes", SIZES.name))
    return report


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applies the forced sizes to every stream that is made through `_lib.Stream`."""
    stream = _lib.Stream

    def sized(*arguments: Any, **keywords: Any) -> _lib.Stream:
        return stream(*arguments, **keywords | SIZES.of_stream())

    monkeypatch.setattr(_lib, "Stream", sized)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a CUDA device where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish() -> None:
    """Freezes what was imported and collected, some million objects, which no collection then looks at."""
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
    torch.default_generator.manual_seed(0)  # torch.manual_seed also keeps tracebacks
    yield
    torch.random.set_rng_state(state)
