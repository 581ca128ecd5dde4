"""Memory of batches: one lease per field, given back by its last alias, reused, trimmed when idle.

What can be seen from outside is asked of the system (resident memory, page faults); the rest of
`memory_stats()`. What ends or changes a process runs in one of its own.
"""

import gc
import io
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import psutil
import pytest
import torch
from torch.utils.data import RandomSampler

import fastload
from fastload import _lib
from fastload.columns import Rows
from tests.shared import interpreter

resource = pytest.importorskip("resource")

MIB = 1 << 20
BATCH = 16
IMAGE = (3, 224, 224)
IMAGE_BATCH_BYTES = BATCH * 3 * 224 * 224 * 4
DTYPES = [
    dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
    and not str(dtype).startswith(("torch.q", "torch.bits", "torch.bcomplex", "torch.float4"))
    and str(dtype).removeprefix("torch.").rstrip("1234567") not in ("int", "uint")
]


@pytest.fixture(scope="module")
def photographs() -> fastload.Dataset:
    """32 samples: an image of floats that are all its number, and the number."""
    images = torch.arange(32.0).reshape(32, 1, 1, 1).expand(32, *IMAGE).contiguous()
    return fastload.Dataset((Rows(images), Rows(torch.arange(32))))


@pytest.fixture(autouse=True)
def _nothing_leased() -> None:
    if leased():
        gc.collect()
    assert reaches(leased, 0)
    _lib.trim_memory()


def leased() -> int:
    return _lib.memory_stats()["leased_bytes"]


def reaches(value: Callable[[], int], limit: int) -> bool:
    """Tells whether `value()` falls to `limit` within seconds."""
    end = time.monotonic() + 10
    while value() > limit and time.monotonic() < end:
        time.sleep(0.02)
    return value() <= limit


def loader_of(dataset: fastload.Dataset, batches: int) -> fastload.Loader:
    sampler = RandomSampler(dataset, replacement=True, num_samples=batches * BATCH)
    return fastload.Loader(dataset, BATCH, sampler=sampler, num_workers=2)


def exhaust(loader: fastload.Loader) -> None:
    """Takes every batch and keeps none."""
    for _ in loader:
        pass


def rss() -> int:
    return psutil.Process().memory_info().rss


def run(program: str) -> str:
    """Runs a program that must end well and say nothing on stderr; returns its output."""
    done = interpreter.run("-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's smaps")
def test_the_allocator_asks_for_no_huge_pages() -> None:
    advised = run(
        f"""
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("fastload._lib", {_lib.__file__!r})
    module = importlib.util.module_from_spec(spec)  # without torch, whose memory is its own
    spec.loader.exec_module(module)
    smaps = Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
    print(sum("hg" in line.split() for line in smaps if line.startswith("VmFlags:")))
    """
    )
    assert int(advised) == 0


def test_labels_that_are_kept_do_not_keep_their_images(photographs: fastload.Dataset) -> None:
    before = rss()
    labels = [labels for _, labels in loader_of(photographs, 100)]
    assert len(labels) == 100
    assert rss() - before < 20 * IMAGE_BATCH_BYTES
    label_bytes = sum(kept.nbytes for kept in labels)
    assert reaches(leased, label_bytes)


@pytest.mark.slow
@pytest.mark.own_sizes
def test_a_list_of_batches_is_given_back(photographs: fastload.Dataset) -> None:
    next(iter(loader_of(photographs, 1)))
    before = rss()
    batches = list(loader_of(photographs, 20))
    assert rss() - before > 18 * IMAGE_BATCH_BYTES
    for images, numbers in batches:
        assert torch.equal(images[:, 0, 0, 0], numbers.float())
    del batches, images, numbers
    assert reaches(lambda: _lib.memory_stats()["idle_bytes"], 0)
    assert reaches(lambda: rss() - before, 2 * IMAGE_BATCH_BYTES)


def test_steady_batches_come_without_page_faults(photographs: fastload.Dataset) -> None:
    batches = iter(loader_of(photographs, 150))
    for _ in range(50):
        next(batches)
    addresses = set()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for images, _ in batches:
        addresses.add(images.data_ptr())
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    pages = 100 * IMAGE_BATCH_BYTES // resource.getpagesize()
    assert len(addresses) < 12
    assert faults < pages / 100


@pytest.mark.own_sizes
def test_idle_memory_ends_its_thread(photographs: fastload.Dataset) -> None:
    def trimmers() -> int:
        process = psutil.Process()
        names = []
        for thread in process.threads():
            try:
                with open(f"/proc/self/task/{thread.id}/comm") as comm:  # noqa: PTH123
                    names.append(comm.read().strip())
            except FileNotFoundError:
                continue
        return names.count("fastload-trim")

    if not sys.platform.startswith("linux"):
        pytest.skip("threads have names on Linux")
    exhaust(loader_of(photographs, 3))
    assert trimmers() <= 1
    assert reaches(lambda: _lib.memory_stats()["idle_bytes"], 0)
    assert reaches(trimmers, 0)


@pytest.mark.parametrize(
    "alias",
    [
        lambda images: images[3],
        lambda images: images.view(-1)[3 * 3 * 224 * 224 :],
        lambda images: images.detach()[3:],
        lambda images: images.numpy()[3],
        lambda images: images.untyped_storage(),
    ],
    ids=["item", "view", "detach", "numpy", "storage"],
)
def test_an_alias_keeps_the_memory(
    photographs: fastload.Dataset, alias: Callable[[torch.Tensor], object]
) -> None:
    images, numbers = next(iter(loader_of(photographs, 1)))
    expected = images.clone()
    kept = alias(images)
    del images
    exhaust(loader_of(photographs, 10))  # overwrites what was given back
    assert reaches(leased, IMAGE_BATCH_BYTES * 9 // 8 + numbers.nbytes)
    assert leased() >= IMAGE_BATCH_BYTES
    if isinstance(kept, torch.UntypedStorage):
        assert torch.equal(torch.tensor([], dtype=torch.float32).set_(kept), expected.view(-1))
    else:
        assert torch.as_tensor(kept).flatten()[0] == numbers[3]
    del kept
    assert reaches(leased, numbers.nbytes)


def test_tensors_outlive_their_loader(photographs: fastload.Dataset) -> None:
    loader = fastload.Loader(photographs, BATCH, num_workers=2)
    batches = list(loader)
    del loader
    gc.collect()
    _lib.trim_memory()
    _lib.park()
    for position, (images, numbers) in enumerate(batches):
        expected = torch.arange(position * BATCH, (position + 1) * BATCH)
        assert torch.equal(numbers, expected)
        assert torch.equal(images, expected.float().reshape(-1, 1, 1, 1).expand(-1, *IMAGE))


def test_storage_has_the_size_of_the_tensor(photographs: fastload.Dataset) -> None:
    images, numbers = next(iter(loader_of(photographs, 1)))
    assert images.untyped_storage().nbytes() == images.nbytes
    assert numbers.untyped_storage().nbytes() == numbers.nbytes
    file = io.BytesIO()
    torch.save(numbers, file)
    assert len(file.getvalue()) < 4096
    assert numbers.data_ptr() % 64 == 0


def test_a_tensor_is_freed_from_another_thread(photographs: fastload.Dataset) -> None:
    batch = next(iter(loader_of(photographs, 1)))
    thread = threading.Thread(target=batch.clear)
    thread.start()
    thread.join()
    assert reaches(leased, 0)


def test_a_tensor_in_a_cycle_is_freed_with_it(photographs: fastload.Dataset) -> None:
    images, _ = next(iter(loader_of(photographs, 1)))
    images.itself = images
    del images, _
    gc.collect()
    assert reaches(leased, 0)


def test_a_graph_keeps_what_it_saved(photographs: fastload.Dataset) -> None:
    images, numbers = next(iter(loader_of(photographs, 1)))
    weight = torch.ones(IMAGE, requires_grad=True)
    loss = (images * weight).sum()
    del images
    exhaust(loader_of(photographs, 10))
    loss.backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad, numbers.sum().float().expand(IMAGE))
    del loss
    assert reaches(leased, numbers.nbytes)


@pytest.mark.parametrize("dtype", sorted(set(DTYPES), key=str), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)], ids=str)
def test_every_dtype_comes_bit_for_bit(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    high = 2 if dtype is torch.bool else 256
    count = torch.Size((7, *shape)).numel()
    raw = torch.randint(high, (count * dtype.itemsize,), dtype=torch.uint8)
    data = raw.view(dtype).reshape(7, *shape)
    batches = list(fastload.Loader(Rows(data), batch_size=3, num_workers=2))
    assert [batch.shape for batch in batches] == [(3, *shape), (3, *shape), (1, *shape)]
    assert {batch.dtype for batch in batches} == {dtype}
    assert b"".join(map(_bytes, batches)) == _bytes(raw)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


LOAD = """
    import os, sys, torch, fastload
    from fastload import _lib
    from fastload.columns import Rows
    torch.set_num_threads(1)  # OpenMP's threads do not survive a fork
    data = torch.arange(40 * 50_000).reshape(40, 50_000)
    loader = fastload.Loader(fastload.Dataset((Rows(data), Rows(torch.arange(40)))), 10,
                             num_workers=2)
"""


def test_a_forked_child_drops_what_it_inherited() -> None:
    out = run(
        LOAD
        + """
    batches = list(loader)
    spare = next(iter(loader))
    del spare
    child = os.fork()
    if child == 0:
        assert all(torch.equal(rows, data[numbers]) for rows, numbers in batches)
        del batches
        assert not any(_lib.memory_stats().values())
        again = list(loader)
        assert all(torch.equal(rows, data[numbers]) for rows, numbers in again)
        del again
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert all(torch.equal(rows, data[numbers]) for rows, numbers in batches)
    print("parent")
    """
    )
    assert out == "parent\n"


def test_tensors_may_be_freed_at_exit() -> None:
    run(
        LOAD
        + """
    import atexit
    batches = list(loader)
    atexit.register(batches.clear)
    torch.kept = list(loader)
    """
    )


def test_torch_without_an_exchange_table() -> None:
    run(
        LOAD
        + """
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        del torch.Tensor.__dlpack_c_exchange_api__
    for dtype in (torch.bool, torch.bfloat16, torch.uint16, torch.float8_e5m2, torch.complex128):
        for shape in ((), (0,), (2, 3)):
            raw = torch.zeros(4, *shape, dtype=dtype)
            for batch in fastload.Loader(Rows(raw), 2, num_workers=1):
                assert (batch.dtype, batch.shape) == (dtype, (2, *shape))
    assert all(torch.equal(rows, data[numbers]) for rows, numbers in loader)
    """
    )


def test_a_capsule_that_torch_refuses_is_freed() -> None:
    run(
        LOAD
        + """
    import gc, time
    import torch.utils.dlpack
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        del torch.Tensor.__dlpack_c_exchange_api__
    def refuse(capsule):
        raise TypeError("refused")
    torch.utils.dlpack.from_dlpack = refuse
    batches = iter(loader)
    for _ in range(4):
        try:
            next(batches)
        except TypeError as error:
            assert "refused" in str(error)
        else:
            raise AssertionError("not raised")
    del batches
    gc.collect()
    for _ in range(100):
        if _lib.memory_stats()["leased_bytes"] == 0:
            break
        time.sleep(0.05)
    assert _lib.memory_stats()["leased_bytes"] == 0
    """
    )
