"""Samples whose pictures wait: damage is found where it would have been, and nothing of it is left."""

import functools
import gc
import io
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

from fastload import Loader, lanes
from fastload.pictures import files, samples, tensors
from fastload.pictures.source import Source, making
from fastload.pictures.waiting import Waiting
from tests.shared import interpreter
from tests.shared.compare import assert_same


def jpeg(number, size=(70, 50)):
    rng = np.random.default_rng(number)
    image = Image.fromarray(rng.integers(0, 256, (5, 7, 3), dtype=np.uint8))
    file = io.BytesIO()
    image.resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=92)
    return file.getvalue()


# Pillow leaves a damaged file open
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 photographs, of which 3 is cut short, 7 no image, 11 damaged in its segments and 15 empty."""
    root = tmp_path_factory.mktemp("photographs")
    for number in range(24):
        data = jpeg(number)
        match number:
            case 3:
                data = data[: len(data) // 2]
            case 7:
                data = b"no image at all"
            case 11:
                data = data[:200] + b"\xff\xc4\x00\x02" * 20 + data[280:]
            case 15:
                data = b""
        (root / f"{number:02}.jpg").write_bytes(data)
    return root


@pytest.fixture(autouse=True)
def pillows():
    yield
    files.uninstall()
    tensors.uninstall()


class Files(Dataset):
    """What a class of a user's has in common with others."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).iterdir())
        self.crop = transforms.RandomCrop(16)
        self.log = []

    def __len__(self):
        return len(self.paths)


class Placeholder(Files):
    def __getitem__(self, index):
        noise = random.random(), float(np.random.rand()), torch.rand(2)
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except Exception as error:
            self.log.append(type(error).__name__)
            image = Image.new("RGB", (20, 20), (index, 0, 0))
        return transforms.functional.to_tensor(self.crop(image)), noise


class NextOne(Files):
    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB").resize((20, 20))
        except OSError:
            return self[random.randrange(len(self))]
        return torch.from_numpy(np.array(image)), index, random.random()


class Checked(Files):
    """Opens each file twice: once to see whether it is whole."""

    def __getitem__(self, index):
        try:
            with Image.open(self.paths[index]) as file:
                file.convert("L")
        except Exception as error:
            return torch.zeros(16, 16, 3, dtype=torch.uint8), type(error).__name__
        image = Image.open(self.paths[index]).convert("RGB")
        return torch.from_numpy(np.array(self.crop(image))), "whole"


class Loaded(Files):
    """Only asks whether a file loads."""

    def __getitem__(self, index):
        try:
            Image.open(self.paths[index]).load()
        except OSError as error:
            return str(error).split(" ")[0]
        return "loads"


class Bare(Files):
    """Whatever is raised is swallowed, and something else is raised."""

    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except:  # noqa: E722
            image = None
        try:
            return transforms.functional.to_tensor(self.crop(image))
        except:  # noqa: E722
            return torch.full((3, 16, 16), random.random())


class Cached(Files):
    """Keeps its images. Damage in the midst of one is found when it is kept already, so those are left out."""

    def __init__(self, folder):
        super().__init__(folder)
        self.paths[11] = self.paths[12]
        self.images = {}

    def __getitem__(self, index):
        if index not in self.images:
            try:
                self.images[index] = Image.open(self.paths[index]).convert("RGB")
            except Exception:
                self.images[index] = Image.new("RGB", (30, 30), "red")
        return transforms.functional.to_tensor(self.crop(self.images[index]))


class Smaller(Files):
    """Has the decoder and Pillow make small images."""

    def __getitem__(self, index):
        try:
            with Image.open(self.paths[index]) as file:
                file.draft("RGB", (30, 20))
                small = file.convert("RGB")
            thumbnail = Image.open(self.paths[index])
            thumbnail.thumbnail((9, 9))
            half = Image.open(self.paths[index]).reduce(2)
        except Exception as error:
            return type(error).__name__, torch.full((3, 50, 70), random.random())
        whole = torch.zeros(3, 50, 70)
        for channel, image in zip(whole, (small, thumbnail.convert("L"), half), strict=True):
            pixels = torch.from_numpy(np.array(image.convert("L")))
            channel[: image.height, : image.width] = pixels
        return str(thumbnail.size), whole


class Pooled(Files):
    """Needs the pixels in other threads."""

    def __getitem__(self, index):
        frames = []
        for path in (self.paths[index], self.paths[index - 1]):
            try:
                frames.append(Image.open(path).convert("RGB"))
            except Exception:
                frames.append(Image.new("RGB", (20, 20), (index, 0, 0)))
        with ThreadPoolExecutor(2) as pool:
            return [float(each.sum()) for each in pool.map(transforms.functional.to_tensor, frames)]


class Nested(Files):
    """Makes another dataset's sample between opening a picture and asking for its pixels."""

    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except Exception:
            image = Image.new("RGB", (20, 20), (index, 0, 0))
        within = samples.waited(Placeholder(self.paths[0].parent))
        return transforms.functional.to_tensor(self.crop(image)), within[0][0], within[3][0]


class Generators(Files):
    """Draws from generators of its own, before a damaged picture is met."""

    def __init__(self, folder):
        super().__init__(folder)
        self.numpys = np.random.default_rng(1), np.random.RandomState(2)
        self.transform = Drawing(random.Random(3), torch.Generator().manual_seed(4))

    def __getitem__(self, index):
        noise = [each.random() for each in self.numpys]
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except Exception:
            image = Image.new("RGB", (20, 20), (index, 0, 0))
        return self.transform(image), noise


class Drawing:
    def __init__(self, pythons, torchs):
        self.pythons, self.torchs = pythons, torchs

    def __call__(self, image):
        image = image.crop((self.pythons.randrange(9), 0, 19, 9)).resize((16, 16))
        drawn = self.pythons.gauss(0, 1), torch.randn(1, generator=self.torchs)
        return transforms.functional.to_tensor(image), drawn


class MadeWithFirst(Files):
    """Makes its generators with the first sample, one of them in a slot."""

    class Holder:
        __slots__ = ("made", "own")

        def __init__(self):
            self.own = np.random.default_rng(1)

    def __init__(self, folder):
        super().__init__(folder)
        self.held, self.pythons = self.Holder(), None

    def __getitem__(self, index):
        if self.pythons is None:
            self.pythons, self.held.made = [random.Random(2)], np.random.RandomState(3)
        noise = self.held.own.random(), self.held.made.rand(), self.pythons[0].random()
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except Exception:
            image = Image.new("RGB", (20, 20), (index, 0, 0))
        return transforms.functional.to_tensor(image.resize((16, 16))), noise


CLASSES = [
    Generators,
    MadeWithFirst,
    Placeholder,
    NextOne,
    Checked,
    Loaded,
    Bare,
    Cached,
    Smaller,
    Pooled,
    Nested,
]


def seed(number):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_sample_is_what_it_is_without_waiting(folder, kind):
    eager, waited = kind(folder), samples.waited(kind(folder))
    for epoch in range(2):
        for index in range(24):
            seed(100 * epoch + index)
            expected = eager[index]
            after = random.random(), float(np.random.rand()), float(torch.rand(()))
            seed(100 * epoch + index)
            assert_same(waited[index], expected)
            assert (random.random(), float(np.random.rand()), float(torch.rand(()))) == after
    assert making().opened > 0


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_torchs(folder, kind, workers):
    arguments = {"batch_size": 5, "shuffle": True, "num_workers": workers}
    for number in range(3):
        torch.manual_seed(number)
        expected = list(DataLoader(kind(folder), **arguments))
        torch.manual_seed(number)
        assert_same(list(Loader(kind(folder), **arguments)), expected)


@pytest.mark.parametrize("mode", ["P", "L", "1", "I;16"])
@pytest.mark.parametrize("workers", [1, 2])
def test_masks_stay_as_pillow_has_them(tmp_path, mode, workers):
    rng = np.random.default_rng(1)
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    for number in range(6):
        (tmp_path / "images" / f"{number}.jpg").write_bytes(jpeg(number))
        values = rng.integers(0, 2000 if mode == "I;16" else 21, (50, 70))
        mask = Image.fromarray(values.astype(np.uint16 if mode == "I;16" else np.uint8))
        if mode == "P":
            mask.putpalette(list(range(63)))
        mask = mask.convert("1") if mode == "1" else mask
        assert mask.mode == mode
        mask.save(tmp_path / "masks" / f"{number}.png")

    class Masked(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index]).convert("RGB")
            mask = Image.open(tmp_path / "masks" / f"{index}.png")
            box = transforms.RandomCrop.get_params(image, (32, 40))
            image, mask = (transforms.functional.crop(each, *box) for each in (image, mask))
            small = mask.resize((9, 8), Image.Resampling.NEAREST)
            kind = type(mask).__name__, mask.mode, mask.getpalette()
            arrays = [torch.from_numpy(np.array(each).astype(np.int64)) for each in (mask, small)]
            return transforms.functional.to_tensor(image), *arrays, repr(kind)

    arguments = {"batch_size": 2, "num_workers": workers}
    torch.manual_seed(1)
    expected = list(DataLoader(Masked(tmp_path / "images"), **arguments))
    torch.manual_seed(1)
    assert_same(list(Loader(Masked(tmp_path / "images"), **arguments)), expected)


def test_what_is_raised_is_pillows(folder):
    class Plain(Files):
        def __getitem__(self, index):
            return transforms.functional.to_tensor(Image.open(self.paths[index]).convert("RGB"))

    eager, waited = Plain(folder), samples.waited(Plain(folder))
    for index in (3, 7, 11, 15):
        with pytest.raises(Exception) as expected:  # noqa: PT011 (Pillow's own)
            eager[index]
        with pytest.raises(type(expected.value)) as got:
            waited[index]
        assert str(got.value) == str(expected.value)


def test_a_damaged_picture_whose_error_is_caught_leaves_its_sample(folder):
    class Marked(Files):
        def __getitem__(self, index):
            image, is_whole = Image.open(self.paths[index]), True
            try:
                image.load()
            except OSError:
                is_whole = False
            return image, is_whole

    eager, waited = Marked(folder), samples.waited(Marked(folder))
    for index in (2, 3):
        (expected, was_whole), (image, is_whole) = eager[index], waited[index]
        assert type(image) is type(expected)
        assert is_whole == was_whole == (index == 2)
    assert vars(image).keys() == vars(expected).keys()


def test_tracebacks_are_what_they_are_without_waiting(folder):
    class Missing(Files):
        def __getitem__(self, index):
            return Image.open(folder / "none.jpg")

    frames = []
    for dataset in (Missing(folder), samples.waited(Missing(folder))):
        with pytest.raises(FileNotFoundError) as raised:
            dataset[0]
        frames.append([entry.name for entry in raised.traceback][1:])
    assert frames[0] == frames[1]
    assert Image.open.__code__.co_filename == Image.__file__


def test_samples_without_pictures_are_soon_made_directly(folder):
    class Late(Files):
        def __getitem__(self, index):
            if index == "missing":
                raise KeyError(index)
            caller = sys._getframe(1).f_code.co_filename
            picture = Image.open(self.paths[0]) if index == "picture" else None
            return caller == __file__, isinstance(picture, Waiting)

    waited = samples.waited(Late(folder))
    direct, _ = zip(*(waited["number"] for _ in range(200)), strict=True)
    assert 190 < sum(direct) < 200
    _, waits = zip(*(waited["picture"] for _ in range(100)), strict=True)
    assert not waits[0]
    assert all(waits[64:])
    for _ in range(10):
        waited["number"]
    with pytest.raises(KeyError) as raised:
        waited["missing"]
    assert [entry.name for entry in raised.traceback][1:] == ["__getitem__"]


def test_an_exception_of_the_users_comes_after_that_of_a_damaged_file(folder):
    class Wrong(Files):
        def __getitem__(self, index):
            Image.open(self.paths[index]).convert("RGB")
            raise KeyError(index)

    waited = samples.waited(Wrong(folder))
    with pytest.raises(OSError, match="truncated"):
        waited[3]
    with pytest.raises(KeyError, match="4"):
        waited[4]


def test_pictures_in_a_sample_are_pillows_own(folder):
    class Nested(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index]).convert("RGB")
            return {"image": image, "views": [image.crop((0, 0, 9, 9)), (image.rotate(90), index)]}

    sample = samples.waited(Nested(folder))[0]
    found = [sample["image"], sample["views"][0], sample["views"][1][0]]
    assert [type(image) for image in found] == [Image.Image] * 3
    assert all(image._im is not None for image in found)


def test_a_file_that_a_sample_only_opens_is_pillows_own_and_unread(folder):
    class Opened(Files):
        def __getitem__(self, index):
            with open(self.paths[index], "rb") as file:  # noqa: PTH123
                closed = Image.open(file)
            return Image.open(self.paths[index]), {"closed": closed}

    image, rest = samples.waited(Opened(folder))[0]
    expected, expected_rest = Opened(folder)[0]
    assert type(image) is type(expected)
    assert image._im is None
    assert image == expected
    for each in (rest["closed"], expected_rest["closed"]):
        with pytest.raises(ValueError, match="closed file"):
            each.load()


class Archived:
    """A file of an archive, with no more than what Pillow needs."""

    def __init__(self, path):
        self._file = io.BytesIO(path.read_bytes())
        self.seek, self.tell = self._file.seek, self._file.tell

    def read(self, size):
        return self._file.read(min(size, 1000))


def test_files_are_read_with_a_size_as_pillow_reads_them(folder):
    class OfAnArchive(Files):
        def __getitem__(self, index):
            image = Image.open(Archived(self.paths[index])).convert("RGB")
            return torch.from_numpy(np.array(self.crop(image))), isinstance(image, Waiting)

    seed(1)
    expected, _ = OfAnArchive(folder)[0]
    seed(1)
    pixels, waited = samples.waited(OfAnArchive(folder))[0]
    assert torch.equal(pixels, expected)
    assert waited


def test_without_pictures_nothing_is_looked_at_any_more():
    waited = samples.waited(list(range(1000)))
    assert [waited[index] for index in range(500)] == list(range(500))
    assert not making().is_on


def test_a_replaced_open_is_left_alone(folder, monkeypatch):
    pillows = Image.open
    monkeypatch.setattr(Image, "open", lambda *arguments: pillows(*arguments))
    seed(1)
    opened = making().opened
    samples.waited(Placeholder(folder))[0]
    assert making().opened == opened


def test_replaced_methods_are_left_alone(folder, monkeypatch):
    monkeypatch.setattr(Image.Image, "resize", lambda self, *arguments: self)
    waited = samples.waited(Placeholder(folder))
    seed(1)
    opened = making().opened
    waited[0]
    assert making().opened == opened


def timed(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        return function(*arguments, **named)

    return call


WRAPS = [timed, functools.partial, lambda function: mock.Mock(wraps=function)]
WRAPPED = [
    (transforms.Compose, "__call__", timed),
    *((transforms.functional, "to_tensor", wrap) for wrap in WRAPS),
    *((Image, "open", wrap) for wrap in WRAPS),
]


@pytest.mark.parametrize(("owner", "name", "wrap"), WRAPPED)
def test_wrapped_functions_are_called_as_they_are(owner, name, wrap, folder, monkeypatch):
    monkeypatch.setattr(tensors, "_swaps", {})  # as if nothing had been looked at yet
    monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))

    class Normalized(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index]).convert("RGB")
            return transforms.Compose([transforms.ToTensor(), torch.neg])(image)

    seed(1)
    assert_same(samples.waited(Normalized(folder))[0], Normalized(folder)[0])


def ones(pic):
    return torch.ones(1) * pic.size[0]


def test_plain_functions_in_place_of_torchvisions_are_called(folder, monkeypatch):
    monkeypatch.setattr(tensors, "_swaps", {})
    monkeypatch.setattr(transforms.functional, "to_tensor", ones)
    waited = samples.waited(Placeholder(folder))
    assert_same(waited[0][0], torch.ones(1) * 16)
    assert_same(ones(Image.new("L", (3, 3))), torch.ones(1) * 3)


def test_a_damaged_picture_in_a_pool_of_the_samples_own_is_an_error(tmp_path):
    Image.new("RGB", (64, 64)).save(tmp_path / "0.png")
    data = (tmp_path / "0.png").read_bytes()
    at = data.index(b"IDAT") + 8
    (tmp_path / "0.png").write_bytes(data[:at] + bytes(8) + data[at + 8 :])

    class Pool(Files):
        def __getitem__(self, index):
            images = [Image.open(self.paths[index]).convert("RGB")]
            with ThreadPool(1) as pool:
                return pool.map_async(transforms.functional.to_tensor, images).get(timeout=20)

    with pytest.raises(Exception) as expected:  # noqa: PT011 (Pillow's own)
        Pool(tmp_path)[0]
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        samples.waited(Pool(tmp_path))[0]
    del expected
    gc.collect()  # closes the files, which Pillow leaves open, here


def test_a_file_that_another_mode_was_made_of_is_not_checked_again(folder, monkeypatch):
    class Grey(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index])
            image.load()
            return transforms.functional.to_tensor(image.convert("L"))

    checked = []
    monkeypatch.setattr(Source, "check", checked.append)
    assert_same(samples.waited(Grey(folder))[0], Grey(folder)[0])
    assert not checked


@pytest.mark.parametrize("change", ["partial", "none"])
def test_an_open_that_is_no_function_at_import_is_left_alone(change, tmp_path):
    script = """
import functools, sys
from PIL import Image
if sys.argv[1] == "partial":
    Image.open = functools.partial(Image.open)
from fastload.pictures import samples
print(samples.waited([1, 2])[1], samples.waited([1, 2])[0])
"""
    done = interpreter.run("-c", script, change)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "1"]


def test_pictures_in_data_classes_are_pillows_own(folder):
    @dataclass
    class Pair:
        image: Image.Image
        mask: Image.Image

    class Pairs(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index]).convert("RGB")
            return Pair(image, image.convert("L"))

    pair = samples.waited(Pairs(folder))[0]
    assert type(pair.image) is type(pair.mask) is Image.Image
    assert pair.mask.tobytes() == Pairs(folder)[0].mask.tobytes()


def test_values_beside_a_picture_are_not_looked_at_one_by_one(folder):
    class Boxed(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[index]).convert("RGB")
            return {"image": image, "boxes": [[1.5, 2, True]] * 5 + [2000 * [1.5]]}

    calls = []

    def note(frame, event, _):
        if event == "call" and "_finish" in frame.f_code.co_name:
            calls.append(1)

    waited = samples.waited(Boxed(folder))
    sys.setprofile(note)
    try:
        sample = waited[0]
    finally:
        sys.setprofile(None)
    assert type(sample["image"]) is Image.Image
    assert len(calls) < 20


def test_library_datasets_stay_native_afterwards(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(jpeg(0))
    images = datasets.ImageFolder(tmp_path, transforms.ToTensor())
    assert lanes.choose(Loader(images)).lane == "native"
    seed(1)
    opened = making().opened
    samples.waited(Placeholder(tmp_path / "a"))[0]
    assert making().opened == opened + 1
    assert lanes.choose(Loader(images)).lane == "native"


def test_lists_of_samples_are_made_again_as_a_whole(folder):
    class Listed(Placeholder):
        def __getitems__(self, indices):
            return [self[index] for index in indices]

    indices = [0, 3, 5, 7]
    seed(5)
    expected = Listed(folder).__getitems__(indices)
    seed(5)
    assert_same(samples.waited(Listed(folder)).__getitems__(indices), expected)


def test_waiting_can_be_switched_off(folder):
    class Seen(Files):
        def __getitem__(self, index):
            image = Image.open(self.paths[0])
            return isinstance(image, Waiting)

    for lazy in (True, False):
        loader = Loader(Seen(folder), num_workers=1, lazy_images=lazy)
        assert next(iter(loader)).tolist() == [lazy]
        assert Loader(Seen(folder), lazy_images=lazy).lazy_images is lazy
