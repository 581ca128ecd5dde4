"""What Pillow raises for a file that native code refuses is raised, once, in the place of its batch."""

import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import PIL.ImageFile
import pytest
from torch.utils.data import DataLoader

import fastload
from fastload.machine import pillow
from tests.shared.compare import MANY_WORKERS, assert_same, assert_same_outcomes, outcomes
from tests.shared.sizes import SIZES

from .foreign import HEIGHT, KINDS, WIDTH, Plain, assert_no_threads, dataset, pixels, write

pytestmark = [MANY_WORKERS, pytest.mark.usefixtures("no_foreign_thread")]


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
        assert loader.stats()["pillow_fallbacks"] == {}
    else:
        with pytest.warns(PIL.Image.DecompressionBombWarning):
            assert_same(list(loader), want)


def test_without_pillow_a_refusal_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pillow, "is_installed", lambda: False)
    paths = write(tmp_path, ["jpeg", "gif", "jpeg"])
    loader = fastload.Loader(dataset(paths), **SIZES)
    results = outcomes(loader)
    assert [isinstance(result, OSError) for result in results] == [False, True, False]
    assert str(results[1]).startswith(f'cannot decode "{paths[1]}": ')
    with pytest.raises(OSError, match="cannot decode"):
        loader.dataset[1]
    assert "pillow_fallbacks" not in loader.stats()


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
