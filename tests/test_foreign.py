"""What native code refuses is Pillow's: its pixels or its exception, in a thread of the loader."""

import gc
import logging
import os
import signal
import subprocess
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.features
import PIL.Image
import PIL.ImageFile
import pytest
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as v1

import fastload
from fastload import _lib, pillow, transforms
from fastload.columns import Image, Rows

from ._compare import MANY_WORKERS, SIZES, assert_same
from ._program import arguments, assert_clean
from .test_fork import in_child

pytestmark = MANY_WORKERS

HEIGHT, WIDTH = 40, 30
THREAD = "fastload-pillow"


def pixels(seed: int, height: int = HEIGHT, width: int = WIDTH) -> "PIL.Image.Image":
    draw = np.random.default_rng(seed)
    ramp = np.linspace(0, 200, height)[:, None, None] * draw.random(3)
    noise = draw.integers(0, 55, (height, width, 3))
    return PIL.Image.fromarray((ramp + noise).astype(np.uint8))


def with_transparency(image: "PIL.Image.Image") -> "PIL.Image.Image":
    image.putalpha(image.convert("L"))
    return image


KINDS: dict[str, Callable[["PIL.Image.Image", Path], Any]] = {
    "jpeg": lambda image, path: image.save(path, "JPEG"),
    "gif": lambda image, path: image.save(path, "GIF"),
    "bmp": lambda image, path: image.save(path, "BMP"),
    "tiff": lambda image, path: image.save(path, "TIFF", compression="tiff_lzw"),
    "cmyk": lambda image, path: image.convert("CMYK").save(path, "JPEG"),
    "cmyk tiff": lambda image, path: image.convert("CMYK").save(path, "TIFF"),
    "palette": lambda image, path: image.convert("P").save(path, "PNG"),
    "alpha": lambda image, path: with_transparency(image).save(path, "PNG"),
    "wide": lambda image, path: image.convert("I;16").save(path, "TIFF"),
    "one bit": lambda image, path: image.convert("1").save(path, "TIFF"),
    "webp": lambda image, path: image.save(path, "WEBP"),
    "ppm": lambda image, path: image.save(path, "PPM"),
}
if PIL.features.check("avif"):
    KINDS["avif"] = lambda image, path: image.save(path, "AVIF")


def write(folder: Path, kinds: list[str]) -> list[str]:
    """Writes one file of each kind, whose names do not tell what they are."""
    paths = [folder / f"{number:03}.jpeg" for number in range(len(kinds))]
    for seed, (kind, path) in enumerate(zip(kinds, paths, strict=True)):
        KINDS[kind](pixels(seed), path)
    return list(map(str, paths))


class Plain(torch.utils.data.Dataset[Any]):
    """The dataset that people have: Pillow opens, converts, and says what is wrong."""

    def __init__(self, paths: list[str], transform: Any = None) -> None:
        self.paths = paths
        self.transform = transform or (lambda image: torch.from_numpy(np.array(image)))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:  # noqa: PTH123 (as torchvision does)
            image = PIL.Image.open(file).convert("RGB")
        return self.transform(image), torch.tensor(index)


def dataset(paths: list[str], *steps: Any) -> fastload.Dataset:
    return fastload.Dataset((Image(paths, list(steps)), Rows(torch.arange(len(paths)))))


def outcomes(batches: Any) -> list[Any]:
    """Returns each batch, or the exception in its place."""
    iterator, results = iter(batches), []
    while True:
        try:
            results.append(next(iterator))
        except StopIteration:
            return results
        except Exception as error:
            results.append(error)


def assert_same_outcomes(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        if not isinstance(theirs, Exception):
            assert_same(ours, theirs)
            continue
        assert type(ours) is type(theirs)
        assert (str(ours), ours.args) == (str(theirs), theirs.args)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def assert_no_threads() -> None:
    deadline = time.monotonic() + 10
    while threads() and time.monotonic() < deadline:
        gc.collect()  # again: a thread holds the exception that it gave for a moment longer
        time.sleep(0.005)
    assert not threads()


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No thread is left by a test: each ends with its iterator."""
    yield
    assert_no_threads()


@pytest.mark.own_sizes
@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 2), (8, 8)])
def test_equals_torch_over_a_python_dataset(tmp_path: Path, workers: int, ahead: int):
    paths = write(tmp_path, [*KINDS, "jpeg", "jpeg", "gif"] * 2)
    for batch_size in (1, 4, len(paths), None):
        loader = fastload.Loader(
            dataset(paths), batch_size, num_workers=workers, prefetch_factor=ahead
        )
        assert_same(list(loader), list(DataLoader(Plain(paths), batch_size)))


def test_equals_torch_with_transforms(tmp_path: Path):
    paths = write(tmp_path, [*KINDS, "jpeg"])
    ours = transforms.Resize(24), transforms.CenterCrop(20), transforms.ToTensor()
    theirs = v1.Compose([v1.Resize(24), v1.CenterCrop(20), v1.ToTensor()])
    data = dataset(paths, *ours)
    want = list(DataLoader(Plain(paths, theirs), 5))
    assert_same(list(fastload.Loader(data, 5, **SIZES)), want)
    assert_same([data[index] for index in range(5)], [Plain(paths, theirs)[i] for i in range(5)])


def test_draws_are_those_of_a_native_file(tmp_path: Path):
    """The same pixels as JPEG and as BMP files give the same random samples."""
    jpegs = write(tmp_path, ["jpeg"] * 6)
    bitmaps = [path.replace(".jpeg", ".bmp") for path in jpegs]
    for jpeg, bitmap in zip(jpegs, bitmaps, strict=True):
        with PIL.Image.open(jpeg) as image:
            image.save(bitmap)
    ops = [("random_resized_crop", (16, 16), (0.1, 1), (0.8, 1.2), pillow.kernel("bilinear"))]
    ops.append(("flip", 0.5, False))

    def samples(paths: list[str]) -> list[Any]:
        program = _lib.Program([_lib.Image(paths, "RGB", ops, ("bytes", "hwc"))], 0)
        decode = pillow.decoder()
        one_by_one = [program.sample(index, seed=5, foreign=decode) for index in range(len(paths))]
        stream = _lib.Stream(
            program,
            batched=True,
            depth=2,
            budget_bytes=1 << 20,
            threads=2,
            fetch=2,
            compute=2,
            seed=5,
            foreign=pillow.server(dataset(paths)),
        )
        stream.submit(list(range(len(paths))))
        batch = stream.take(0)
        stream.close()
        assert_same(batch, torch.stack(one_by_one))
        return one_by_one

    assert_same(samples(bitmaps), samples(jpegs))


def test_samples_of_several_images(tmp_path: Path):
    """Each image is made once, whichever of a sample's files are refused."""
    kinds = ["jpeg", "gif", "bmp", "jpeg", "gif"]
    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    left, right = write(tmp_path / "left", kinds), write(tmp_path / "right", kinds[::-1])
    columns = [Image(left), Rows(torch.arange(5)), Image(right), Image(left)]
    data = fastload.Dataset(tuple(columns))
    assert_same(list(fastload.Loader(data, 2, **SIZES)), list(DataLoader(data, 2)))
    assert_same(data[1][2], Plain(right)[1][0])


def test_the_right_file_behind_columns_over_columns(tmp_path: Path):
    """A refused file is the one that a selection of several columns means, in each of two leaves."""
    kinds = ["gif", "jpeg", "bmp", "gif"]
    paths = write(tmp_path, kinds)
    encoded = [Path(path).read_bytes() for path in paths]
    ends = np.cumsum([0, *map(len, encoded)])
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    want = [image for image, _ in (Plain(paths)[index] for index in range(len(paths)))]

    def rows(array: Any) -> Any:
        return Rows(np.asarray(array))._core

    buffer = _lib.Ragged(rows(letters), rows(ends))
    of_files, of_bytes, of_pixels = (
        _lib.Image(source, "RGB", [], ("bytes", "hwc"))
        for source in (paths, buffer, rows(torch.stack(want)))
    )
    left = _lib.Concat([_lib.Select(of_files, rows([3, 1])), of_pixels, of_bytes])
    right = _lib.Select(left, rows(range(len(left) - 1, -1, -1)))
    expected = [want[3], want[1], *want, *want]
    program = _lib.Program([left, right], (0, 1))
    limits = {"depth": 2, "budget_bytes": 1 << 20, "threads": 2, "fetch": 2, "compute": 2}
    asker = dataset(paths)
    stream = _lib.Stream(program, batched=True, foreign=pillow.server(asker), **limits)
    order = [9, 0, 4, 6, 0, 8, 2, 1]
    stream.submit(order)
    batch = stream.take(0)
    assert stream.stats()["asked_pillow"] == 9
    stream.close()
    assert_same(batch[0], torch.stack([expected[index] for index in order]))
    assert_same(batch[1], torch.stack([expected[len(left) - 1 - index] for index in order]))
    for index in range(len(left)):
        sample = program.sample(index, foreign=pillow.decoder())
        assert_same(sample, (expected[index], expected[-1 - index]))


def cut(path: str, share: float) -> None:
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: int(len(content) * share)])


DAMAGE: dict[str, Callable[[str], Any]] = {
    "truncated": lambda path: cut(path, 0.6),
    "header only": lambda path: cut(path, 0.05),
    "empty": lambda path: cut(path, 0),
    "text": lambda path: Path(path).write_bytes(b"no photograph " * 9),
    "missing": lambda path: Path(path).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["jpeg", "gif", "tiff"])
def test_raises_what_the_python_dataset_raises(tmp_path: Path, kind: str, damage: str):
    paths = write(tmp_path, [kind] * 7)
    for bad in (2, 5):
        DAMAGE[damage](paths[bad])
    want = outcomes(DataLoader(Plain(paths), 2))
    got = outcomes(fastload.Loader(dataset(paths), 2, **SIZES))
    assert_same_outcomes(got, want)
    for index, batch in ((2, 1), (5, 2)):
        with pytest.raises(type(want[batch])) as by_index:
            dataset(paths)[index]
        assert_same_outcomes([by_index.value], [want[batch]])
        if damage != "missing":
            note = f"while Pillow decoded {paths[index]!r}"
            assert by_index.value.__notes__ == [note]
            assert got[batch].__notes__ == [note, f"while loading sample {index} (batch {batch})"]


def test_a_traceback_leads_into_pillow(tmp_path: Path):
    paths = write(tmp_path, ["jpeg"])
    DAMAGE["text"](paths[0])
    [error] = outcomes(fastload.Loader(dataset(paths), **SIZES))
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames][-3:] == ["_next_data", "decode", "open"]


def test_the_first_by_position_is_raised(tmp_path: Path):
    paths = write(tmp_path, ["jpeg", "gif", "jpeg", "jpeg"])
    DAMAGE["text"](paths[1])
    DAMAGE["missing"](paths[2])
    DAMAGE["text"](paths[3])
    [error] = outcomes(fastload.Loader(dataset(paths), 4, **SIZES))
    assert isinstance(error, PIL.UnidentifiedImageError)
    assert paths[1] in str(error)


def test_truncated_files_may_be_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = write(tmp_path, ["jpeg", "jpeg", "tiff", "bmp"])
    for path in paths:
        cut(path, 0.7)
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    want = outcomes(DataLoader(Plain(paths), 1))
    assert not any(isinstance(batch, Exception) for batch in want[:2])
    assert_same_outcomes(outcomes(fastload.Loader(dataset(paths), 1, **SIZES)), want)


@pytest.mark.parametrize("kind", ["jpeg", "gif"])
def test_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """More than the limit is a warning, an error here; more than twice as many an error anywhere."""
    paths = write(tmp_path, [kind] * 4)
    for seed, (index, height) in enumerate([(1, HEIGHT + 1), (2, 2 * HEIGHT + 1)]):
        KINDS[kind](pixels(seed, height), Path(paths[index]))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", HEIGHT * WIDTH)
    want = outcomes(DataLoader(Plain(paths)))
    kinds = PIL.Image.DecompressionBombWarning, PIL.Image.DecompressionBombError
    assert tuple(map(type, want[1:3])) == kinds
    assert_same_outcomes(outcomes(fastload.Loader(dataset(paths), **SIZES)), want)


@pytest.mark.parametrize("limit", [HEIGHT * WIDTH - 1, None])
def test_pixels_are_only_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: Any):
    paths = write(tmp_path, ["jpeg"])
    want = list(DataLoader(Plain(paths)))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", limit)
    loader = fastload.Loader(dataset(paths), **SIZES)
    if limit is None:
        assert_same(list(loader), want)
        assert loader.stats()["asked_pillow"] == 0
    else:
        with pytest.warns(PIL.Image.DecompressionBombWarning):
            assert_same(list(loader), want)


def test_without_pillow_a_refusal_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pillow, "_is_installed", lambda: False)
    paths = write(tmp_path, ["jpeg", "gif", "jpeg"])
    loader = fastload.Loader(dataset(paths), **SIZES)
    results = outcomes(loader)
    assert [isinstance(result, OSError) for result in results] == [False, True, False]
    assert str(results[1]).startswith(f'cannot decode "{paths[1]}": ')
    with pytest.raises(OSError, match="cannot decode"):
        loader.dataset[1]
    assert "asked_pillow" not in loader.stats()


def test_counted_and_named_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    paths = write(tmp_path, ["jpeg", "gif", "jpeg", "tiff", "gif", "ppm"])
    loader = fastload.Loader(dataset(paths), 2, **SIZES)
    with caplog.at_level(logging.INFO, logger="fastload"):
        for _ in range(2):
            list(loader)
            stats = loader.stats()
            asked = {name: stats[name] for name in stats if name.startswith("asked_pillow")}
            assert asked.pop("asked_pillow_s") > 0
            assert asked == {
                "asked_pillow": 4,
                "asked_pillow_gif": 2,
                "asked_pillow_tiff": 1,
                "asked_pillow_unknown": 1,
            }
            assert stats["samples"] == 6
    [record] = caplog.records
    assert any(path in record.message for path in paths)


@pytest.fixture
def deciders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes which threads decode with Pillow."""
    names: list[str] = []
    decode = pillow.decode

    def noted(*asked: Any) -> Any:
        names.append(threading.current_thread().name)
        return decode(*asked)

    monkeypatch.setattr(pillow, "decode", noted)
    return names


def test_who_takes_batches_decodes_nothing(tmp_path: Path, deciders: list[str]):
    paths = write(tmp_path, ["gif"] * 12)
    loader = fastload.Loader(dataset(paths), 2, **SIZES)
    list(loader)
    assert deciders == [THREAD] * 12
    loader.dataset[3]
    assert deciders[12:] == [threading.current_thread().name]


def test_pixels_beyond_the_budget(tmp_path: Path):
    """What came back counts as fetched, and the oldest batch still goes on."""
    paths = write(tmp_path, ["gif", "jpeg", "bmp"] * 6)
    loader = fastload.Loader(dataset(paths), 4, memory_budget=1, **SIZES)
    assert_same(list(loader), list(DataLoader(Plain(paths), 4)))


def test_no_thread_unless_it_is_needed(tmp_path: Path):
    iterator = iter(fastload.Loader(dataset(write(tmp_path, ["jpeg"] * 8)), 2, **SIZES))
    next(iterator)
    assert not threads()


@pytest.mark.parametrize("persistent", [True, False])
def test_two_iterators_over_epochs(tmp_path: Path, *, persistent: bool):
    paths = write(tmp_path, ["jpeg", "gif", "bmp"] * 8)
    want = list(DataLoader(Plain(paths), 3))
    loaders = [
        fastload.Loader(dataset(paths), 3, persistent_workers=persistent, **SIZES) for _ in range(2)
    ]
    for _ in range(3):
        for left, right, batch in zip(*loaders, want, strict=True):
            assert_same(left, batch)
            assert_same(right, batch)
    del loaders
    assert_no_threads()


class Gate:
    """Keeps Pillow's threads until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        decode = pillow.decode

        def wait(*asked: Any) -> Any:
            self.entered.set()
            assert self.opened.wait(20)
            return decode(*asked)

        monkeypatch.setattr(pillow, "decode", wait)

    def is_reached_by(self, iterator: Any) -> None:
        """Has `iterator` start the thread, and waits until it decodes."""
        with pytest.raises(RuntimeError, match="timed out"):
            next(iterator)
        assert self.entered.wait(20)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Any:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


def test_an_iterator_left_early_is_gone_at_once(tmp_path: Path, gate: Gate):
    paths = write(tmp_path, ["gif"] * 12)
    loader = fastload.Loader(dataset(paths), 2, timeout=0.2, **SIZES)
    iterator = iter(loader)
    gate.is_reached_by(iterator)
    alive = weakref.ref(iterator)
    del iterator
    assert alive() is None  # nothing refers to it: no cycle, no thread
    assert len(threads()) == 1
    gate.opened.set()
    assert_no_threads()
    assert loader.stats()["batches"] == 0  # which outlive the iterator


def test_native_batches_of_others_come_meanwhile(tmp_path: Path, gate: Gate):
    (tmp_path / "native").mkdir()
    stuck = iter(fastload.Loader(dataset(write(tmp_path, ["gif"])), timeout=0.2, **SIZES))
    gate.is_reached_by(stuck)
    paths = write(tmp_path / "native", ["jpeg"] * 8)
    assert_same(
        list(fastload.Loader(dataset(paths), 2, **SIZES)), list(DataLoader(Plain(paths), 2))
    )
    gate.opened.set()
    assert next(stuck)[1].tolist() == [0]


def test_an_error_keeps_nothing_alive(tmp_path: Path):
    paths = write(tmp_path, ["gif"] * 3)
    DAMAGE["text"](paths[0])
    iterator = iter(fastload.Loader(dataset(paths), **SIZES))
    with pytest.raises(PIL.UnidentifiedImageError) as caught:
        next(iterator)
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next.tb_next.tb_next)
    del caught
    alive = weakref.ref(iterator)
    del iterator
    assert alive() is None
    assert_no_threads()
    assert traceback.extract_tb(error.__traceback__)[0].name == "decode"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError, StopIteration])
def test_whatever_is_raised_is_raised_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
):
    paths, decode = write(tmp_path, ["gif"] * 3), pillow.decode

    def fail(source: str, mode: str) -> Any:
        if source == paths[1]:
            raise kind(source)
        return decode(source, mode)

    monkeypatch.setattr(pillow, "decode", fail)
    iterator = iter(fastload.Loader(dataset(paths), **SIZES))
    next(iterator)
    with pytest.raises(kind) as caught:
        next(iterator)
    assert caught.value.args == (paths[1],)
    assert next(iterator)[1].tolist() == [2]


@pytest.mark.parametrize(
    "answer",
    [
        (b"\0" * 12, (2, 2, 3)),
        (b"\0" * 11, (2, 2, 3)),
        (b"\0" * 4, (2, 2, 1)),
        (b"", (2**62, 4, 1)),
    ],
)
def test_an_answer_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any):
    monkeypatch.setattr(pillow, "decode", lambda *_: answer)
    data = dataset(write(tmp_path, ["gif"]))
    [result] = outcomes(fastload.Loader(data, **SIZES))
    if answer[0] == b"\0" * 12:
        assert_same(result[0], torch.zeros(1, 2, 2, 3, dtype=torch.uint8))
        return
    assert isinstance(result, ValueError)
    with pytest.raises(ValueError, match="cannot take"):
        data[0]


def test_a_thread_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An error, not a wait for ever; and the next attempt is one."""
    paths = write(tmp_path, ["gif"] * 2)
    iterator = iter(fastload.Loader(dataset(paths), 2, **SIZES))
    with monkeypatch.context() as refused:

        def start(thread: threading.Thread) -> None:
            msg = "can't start new thread"
            raise RuntimeError(msg)

        refused.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread") as kept:
            next(iterator)
    assert_same(next(iterator), next(iter(DataLoader(Plain(paths), 2))))
    del kept


FORKS = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@FORKS
def test_a_child_asks_for_itself(tmp_path: Path, gate: Gate):
    """The parent's thread, in the middle of a file, is not in the child."""
    paths = write(tmp_path, ["gif", "jpeg"] * 3)
    want = list(DataLoader(Plain(paths), 2))
    loader = fastload.Loader(dataset(paths), 2, timeout=0.2, **SIZES)
    parents = [iter(loader)]
    gate.is_reached_by(parents[0])

    def child() -> None:
        gate.opened.set()
        with pytest.raises(RuntimeError, match="fork"):
            next(parents[0])
        parents.clear()
        gc.collect()
        assert not threads()
        loader.timeout = 0
        assert_same(list(loader), want)
        assert_no_threads()

    in_child(child)
    gate.opened.set()
    assert_same(list(parents[0]), want)


PROGRAM = """
    import PIL.Image
    folder = {folder!r}
    paths = [f"{{folder}}/{{number}}.gif" for number in range(6)]
    for path in paths:
        PIL.Image.new("RGB", (40, 30)).save(path)
    images = fastload.Dataset(Image(paths))
    reached = threading.Event()
    opened = PIL.Image.open
    def slow(file):
        reached.set()
        {wait}
        return opened(file)
    PIL.Image.open = slow
    it = iter(fastload.Loader(images, num_workers=2, timeout=0.2))
    try:
        next(it)
    except RuntimeError:
        pass
    assert reached.wait(20)
"""

WAITS = {"asleep": "time.sleep(60)", "busy": "while True: pass"}


@pytest.mark.slow
@pytest.mark.parametrize("wait", WAITS)
def test_exit_while_pillow_decodes(tmp_path: Path, wait: str):
    started = time.monotonic()
    assert_clean(PROGRAM.format(folder=str(tmp_path), wait=WAITS[wait]))
    assert time.monotonic() - started < 20


@pytest.mark.slow
def test_ctrl_c_while_pillow_decodes(tmp_path: Path):
    body = PROGRAM.format(folder=str(tmp_path), wait=WAITS["asleep"])
    body += """
    it = iter(fastload.Loader(images, num_workers=2))
    try:
        print("waiting", flush=True)
        next(it)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    with subprocess.Popen(
        arguments(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        os.kill(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err) == (0, "interrupted\n", "")
