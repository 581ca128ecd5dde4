"""Where code does not mean what it seems to: read exactly, or refused."""

import functools
import importlib.util
import linecache
import textwrap
import warnings

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as v1
from torchvision.datasets import folder

from fastload import Loader, lanes
from fastload.lowering import NotNative, lower
from fastload.lowering.reading import source
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .classes import Held, N, Pairs

pd = pytest.importorskip("pandas")
pytestmark = MANY_WORKERS

ROWS = torch.arange(N * 4.0).reshape(N, 4)
scale = 2


def same(dataset, lane="native", **arguments):
    """Asserts that a loader takes a lane, and that its batches are torch's."""
    loader = Loader(dataset, batch_size=4, **SIZES, **arguments)
    assert lanes.choose(loader).lane == lane, loader.explain()
    assert_same(list(loader), list(DataLoader(dataset, batch_size=4, **arguments)))
    return loader


def refused(dataset, why):
    with pytest.raises(NotNative) as reason:
        lower(dataset)
    assert why in reason.value.why, reason.value.why


# --- names


class FakeTorch:
    @staticmethod
    def tensor(value):
        return torch.as_tensor(value) + 1


class Shadowed(Held):
    def __getitem__(self, index):
        torch = FakeTorch
        return torch.tensor(self.labels[index])


class Private(Held):
    def __getitem__(self, index):
        return self.__rows[index]


class Scaled(Held):
    def __getitem__(self, index):
        return self.rows[index] * scale


def scaled_by(factor):
    class Closed(Held):
        def __getitem__(self, index):
            return self.rows[index] * factor

    def change(value):
        nonlocal factor
        factor = value

    return Closed, change


def test_names_mean_what_they_mean_now(monkeypatch):
    refused(Shadowed(labels=list(range(N))), "is not known")
    refused(Private(rows=ROWS, _Private__rows=ROWS), "__rows is private to its class")
    dataset = Scaled(rows=ROWS)
    loader = same(dataset)
    monkeypatch.setitem(globals(), "scale", 3)
    assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))
    kind, change = scaled_by(2)
    loader = same(kind(rows=ROWS))
    change(5)
    assert_same(list(loader), list(DataLoader(kind(rows=ROWS), batch_size=4)))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "tensor", FakeTorch.tensor)
        same(Tensors(labels=list(range(N))))


class Tensors(Held):
    def __getitem__(self, index):
        return torch.tensor(self.labels[index])


# --- classes


class Property(Held):
    @property
    def data(self):
        return self.rows

    def __getitem__(self, index):
        return self.data[index]


class Slotted:
    __slots__ = ("rows",)

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Inherited(Property):
    factor = 2

    def helper(self, index, shift=1):
        """Returns a shifted label."""
        if index < 0:
            raise IndexError
        return self.labels[index] + shift

    def __getitem__(self, index):
        return self.data[index] * self.factor, self.helper(index), self.helper(index, shift=2)


class Nested(Held):
    def __getitem__(self, index):
        rows, label = self.base[N - 1 - index]
        return {"rows": rows[:2], "label": label}


class Lengthy(Held):
    """Says that it is longer than what it holds."""

    def __getitem__(self, index):
        return self.rows[index]


def test_classes_are_followed_as_python_does():
    labels = list(range(N))
    same(Property(rows=ROWS))
    same(Slotted(ROWS))
    same(Inherited(rows=ROWS, labels=labels))
    same(Nested(base=Pairs(ROWS, labels)))
    refused(Lengthy(rows=ROWS[:-1]), "its indices run from 0 to 22, but the container has 22 items")
    same(Lengthy(rows=ROWS.repeat(2, 1)))
    dataset = Property(rows=ROWS)
    dataset.__getitem__ = lambda index: 0  # which Python never asks
    same(dataset)
    dataset.__getitems__ = lambda indices: [torch.zeros(1) for _ in indices]
    refused(dataset, "it has a __getitems__ of its own")


# --- sources

SOURCE = """
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            assert index < len(self), "too large"
            return self.rows[index] {after}
"""


def test_a_source_that_changed_is_not_read(tmp_path):
    file = tmp_path / "edited.py"
    file.write_text(textwrap.dedent(SOURCE.format(after="* 2")))
    spec = importlib.util.spec_from_file_location("edited", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    same(module.Rows(ROWS))
    file.write_text(textwrap.dedent(SOURCE.format(after="* 3")))
    linecache.checkcache()
    source._parsed.cache_clear()
    refused(module.Rows(ROWS), "not what was compiled")


def test_a_source_that_is_loaded_again_is_read(tmp_path):
    file = tmp_path / "reloaded.py"
    spec = importlib.util.spec_from_file_location("reloaded", file)
    module = importlib.util.module_from_spec(spec)
    for after in ("* 2", "+ 12.5"):
        file.write_text(textwrap.dedent(SOURCE.format(after=after)))
        spec.loader.exec_module(module)
        same(module.Rows(ROWS))


@pytest.mark.parametrize("name", ["datasets.own", "statistics", "torch.own"])
def test_a_function_of_the_users_is_read_whatever_its_module_is_called(tmp_path, name):
    file = tmp_path / "own.py"
    function = "def doubled(row):\n    return row * 2\n"
    used = SOURCE.replace("self.rows[index] {after}", "doubled(self.rows[index])")
    file.write_text(function + textwrap.dedent(used))
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    same(module.Rows(ROWS))


def test_code_without_a_source_is_not_read():
    names = {"__name__": "nowhere"}
    exec(textwrap.dedent(SOURCE.format(after="")), names)
    refused(names["Rows"](ROWS), "is not there")


# --- data


class Plain(Held):
    def __getitem__(self, index):
        return self.rows[index]


class Converted(Held):
    def __getitem__(self, index):
        return torch.as_tensor(self.rows[index]).float()


def masked():
    return np.ma.masked_array(np.ones((N, 2)), mask=True)


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        return torch.quantize_per_tensor(torch.ones(N, 2), 0.1, 0, torch.quint8)


DATA = {
    "gradients": (torch.ones(N, 2, requires_grad=True), "requires gradients"),
    "sparse": (torch.eye(N).to_sparse(), "not dense"),
    "quantised": (quantised(), "not dense"),
    "a parameter": (torch.nn.Parameter(torch.ones(N), requires_grad=False), "is not known"),
    "conjugated": (torch.ones(N, 2, dtype=torch.complex64).conj(), "conjugated"),
    "masked": (masked(), "is not known"),
    "objects": (np.array([None] * N, dtype=object), "elements of object"),
    "text": (np.array(["text"] * N), "elements of <U4"),
    "dates": (np.array(["2026-01-01"] * N, dtype="datetime64[D]"), "elements of datetime64"),
    "foreign": (np.ones((N, 2), dtype=">f4"), "foreign byte order"),
    "ints and floats": ([1, 2.5] * 12, "in it"),
    "gaps": ([None, *range(N - 1)], "in it"),
    "large ints": ([2**70] * N, "OverflowError"),
    "text and numbers": (["1", *range(N - 1)], "in it"),
    "arrays of several shapes": ([np.ones((2, k % 2 + 1)) for k in range(N)], "several"),
    "a generator": ((k for k in range(N)), "is not known"),
    "a set": (set(range(N)), "is not known"),
}


@pytest.mark.parametrize(("rows", "why"), DATA.values(), ids=DATA)
def test_data_that_has_no_column_is_refused(rows, why):
    refused(Plain(rows=rows), why)


def read_only():
    rows = np.arange(N * 2.0).reshape(N, 2)
    rows.flags.writeable = False
    return rows


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize(
    "rows",
    [
        *(read_only(), np.arange(N * 4.0).reshape(N, 4)[:, ::2], np.arange(N)[::-1]),
        *(torch.arange(N * 2.0).reshape(2, N).T, torch.ones(1, 3).expand(N, 3)),
        *(np.ones(N, bool), np.ones((N, 0)), torch.ones(N, 2, dtype=torch.bfloat16)),
        *([1] * N, [True] * N, [0.5, -0.0] * 12, [float("nan")] * N, ["", "é"] * 12),
        *(
            [[1, 2]] * N,
            [("a", 1)] * N,
            [{"x": 1, "y": [0.5]}] * N,
            [np.float32(1)] * 0 or [[1.5]] * N,
        ),
        [torch.ones(3, k % 2 + 1)[:, 0] * k for k in range(N)],
    ],
    ids=lambda rows: f"{type(rows).__name__} of {type(rows[0]).__name__}",
)
def test_data_that_has_one(rows):
    same(Plain(rows=rows))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_torchs_default_dtype_counts(dtype):
    dataset = Tensors(labels=[k / 3 for k in range(N)])
    loader = same(dataset)
    torch.set_default_dtype(dtype)
    try:
        assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_default_device_changes_what_tensors_are():
    with torch.device("meta"):
        refused(Tensors(labels=list(range(N))), "a torch function mode")


class Remasked(Dataset):
    def __init__(self):
        self.tokens = [[0] * (1 + number % 5) for number in range(100)]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return torch.tensor(self.tokens[index]).float()


def test_lists_that_change_between_epochs_are_read_again():
    """Also where the memory of the last epoch's values has been given to those of this one."""
    dataset = Remasked()
    loader = Loader(dataset, **SIZES)
    assert lanes.choose(loader).lane == "native"
    for epoch in range(60):
        for tokens in dataset.tokens:
            tokens[0] = epoch
        assert {float(batch[0, 0]) for batch in loader} == {float(epoch)}


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.int32, np.uint16, np.float16, np.float64, bool]
)
def test_casts_are_torchs(dtype):
    rows = np.random.default_rng(2).integers(0, 2 if dtype is bool else 120, (N, 3)).astype(dtype)
    same(Converted(rows=rows))


class Tokens(Held):
    def __getitem__(self, index):
        ids = self.tokens[index][: self.most]
        padded = ids + [0] * (self.most - len(ids))
        return torch.tensor(padded), torch.tensor([1] * len(ids) + [0] * (self.most - len(ids)))


class Cells(Held):
    def __getitem__(self, index):
        row = self.df.iloc[index]
        return (
            row["text"],
            row["count"],
            self.df.iloc[index, 1],
            self.df["share"].values[index],
            self.df.loc[index, "share"],
            self.numbers.iloc[index, 1:].values.astype(np.float32),
            torch.tensor(self.numbers.values[index]),
            self.numbers.iloc[index]["a"],
        )


def frames():
    df = pd.DataFrame({"text": ["é"] * N, "count": range(N), "share": np.arange(N) / 7})
    numbers = pd.DataFrame({"a": np.arange(N), "b": np.arange(N) * 2.5, "c": np.arange(N) * 3})
    return {"df": df, "numbers": numbers}


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]


class ConvertedByNumPy(Held):
    def __getitem__(self, index):
        return [self.rows[index].astype(kind) for kind in self.kinds]


class ConvertedByTorch(Held):
    def __getitem__(self, index):
        return [torch.from_numpy(self.rows[index]).to(dtype) for dtype in self.dtypes]


@pytest.mark.parametrize("source", [*INTEGERS, "float16", *FLOATS])
def test_conversions_are_those_of_the_libraries(source):
    if source in INTEGERS:
        limits, draw, targets = np.iinfo(source), np.random.default_rng(1), INTEGERS + FLOATS
        rows = draw.integers(limits.min, limits.max, (N, 4), source, endpoint=True)
        rows[0] = limits.min, limits.max, 1, limits.max // 2 + 1
    else:
        rows, targets = np.geomspace(1e-7, 6e4, 4 * N).reshape(N, 4).astype(source), FLOATS
        # the bits that torch gives a nan of float16 depend on how many elements there are
        rows[0] = 1 if source == "float16" else np.nan, np.inf, -np.inf, -0.0
    same(ConvertedByNumPy(rows=rows, kinds=targets))
    same(ConvertedByTorch(rows=rows, dtypes=[getattr(torch, each) for each in targets]))


@pytest.mark.parametrize("source", ["float16", *FLOATS])
def test_floats_that_are_integers_are_converted_ahead(source):
    rows = np.arange(4 * N, dtype=source).reshape(N, 4)  # of others there may be no integer
    same(ConvertedByNumPy(rows=rows, kinds=INTEGERS))


def test_lists_and_frames():
    same(Tokens(tokens=[[k] * (k % 7) for k in range(N)], most=5))
    same(Cells(**frames()))
    labelled = frames()
    labelled["df"].index = range(1, N + 1)
    refused(Cells(**labelled), "labels are not 0, 1, 2")


class Digits(Held):
    """Rows as in tables of pictures: a label, then pixels."""

    def __getitem__(self, index):
        row = self.df.iloc[index]
        by_label = self.df.loc[index]
        return (
            row[1:].values.astype(np.uint8).reshape(2, 2),
            row.iloc[1:].to_numpy(),
            row.iloc[0],
            row.iloc[-1],
            row[self.names].values,
            row.loc["p1":"p3"].values,
            row["p0":"p2"].values,
            torch.tensor(by_label[::2].values.astype("float32")),
            self.df.iloc[index, [0, 3, 1]].values,
            self.df.loc[index, self.names].values,
            self.df.loc[index, "p1":].to_numpy(),
            self.df.at[index, "label"],
            self.df.iat[index, 2],
        )


class Unnamed(Held):
    """Rows of a table without a header, whose columns have numbers."""

    def __getitem__(self, index):
        row = self.df.iloc[index]
        return (
            row[:-1].values,
            row[2],
            row[[0, 2]].values,
            row.loc[1:2].values,
            row.iloc[1:2].values,
        )


class Whole(Held):
    def __getitem__(self, index):
        return self.df.iloc[index][self.key].values


class Picked(Held):
    def __getitem__(self, index):
        return self.df.iloc[index, self.key].values


def pixels(dtype="int64"):
    columns = {f"p{k}": (np.arange(N) * (k + 3) % 251).astype(dtype) for k in range(4)}
    return pd.DataFrame({"label": np.arange(N) % 10} | columns)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "uint8"])
def test_parts_of_rows(dtype):
    same(Digits(df=pixels(dtype), names=["p2", "label", "p1"]))
    same(Unnamed(df=pd.DataFrame(pixels(dtype).to_numpy())))


class Cell(Held):
    def __getitem__(self, index):
        return self.df.at[index, self.key]


def test_parts_of_rows_side_by_side_are_not_copied():
    wide = pd.DataFrame(np.zeros((300, 8_000)))
    assert wide.to_numpy().nbytes > 1 << 24
    parts = lower(Whole(df=wide, key=slice(1, None))).leaves
    assert len(parts) == 1
    for key in ([0, 2], list(range(7_999, -1, -1))):
        if len(key) == 2:
            lower(Whole(df=wide, key=key))
        else:
            refused(Whole(df=wide, key=key), "copying 18 MiB of a frame")
    refused(Cell(df=wide, key=slice(None)), "of anything but a cell")


def test_parts_of_rows_that_pandas_refuses_or_gives_as_objects_are_pythons():
    df = pixels()
    refused(Whole(df=df, key=["p9"]), "pandas raises KeyError")
    refused(Whole(df=df, key=slice("p9", None)), "a row of a frame makes int64 of float64")
    refused(Whole(df=df, key=(0, 1)), "indexed by (0, 1)")
    df["name"] = "text"
    refused(Whole(df=df, key=slice(0, 3)), "a row of a frame makes object of int64")
    same(Picked(df=df, key=[1, 2]))
    same(Picked(df=pixels("float32"), key=slice(1, 3)))
    same(Whole(df=pd.concat([pixels(), pixels()], axis=1), key="p1"))


class Values(Held):
    def __getitem__(self, index):
        return self.df["text"].values[index], self.df["some"].to_numpy()[index], len(self.df.values)


class RowValue(Held):
    def __getitem__(self, index):
        return self.df.iloc[index]["share"]


class RowValues(Held):
    def __getitem__(self, index):
        return self.df.iloc[index].to_numpy()


class Doubled(Held):
    def __getitem__(self, index):
        return (self.df["some"].values * 2)[index]


@pytest.mark.parametrize("gap", [None, 3])
def test_nullable_columns_are_refused(gap):
    """Their NA, and the NA that they make of a nan in the same row, have no number."""
    ages = pd.array([pd.NA if place == gap else place for place in range(N)], dtype="Int64")
    shares = [float("nan") if place == 3 else 1.5 for place in range(N)]
    refused(Values(df=pd.DataFrame({"text": ages})), "the array of a column of Int64")
    refused(RowValue(df=pd.DataFrame({"age": ages, "share": shares})), "a row of Float64")
    refused(RowValues(df=pd.DataFrame({"age": ages})), "a row of Int64")
    same(RowValue(df=pd.DataFrame({"age": range(N), "share": shares})))
    same(RowValue(df=pd.DataFrame({"text": ["a"] * N, "share": ["b"] * N})))


def test_columns_of_objects_are_no_lists():
    some = pd.Series([3 if place == 3 else 0 for place in range(N)], dtype=object)
    same(Values(df=pd.DataFrame({"text": ["a"] * N, "some": some})))
    refused(Doubled(df=pd.DataFrame({"some": some})), "* of an array of objects and int")


# --- pictures


class Pictures(Dataset):
    def __init__(self, root, df, transform=None):
        self.root, self.df, self.transform = root, df, transform

    def __len__(self):
        return len(self.df)

    def __getitem__(self, index):
        path = f"{self.root}/{self.df['name'].iloc[index]}.png"
        image = PIL.Image.open(path).convert("RGB")
        if self.transform:
            image = self.transform(image)
        return image, self.df.iloc[index]["label"]


class Joined(Pictures):
    def __getitem__(self, index):
        with PIL.Image.open(self.root / f"{index:02d}.png") as file:
            image = file.convert("RGB")
        return self.transform(image)


class Loaded(Pictures):
    def __getitem__(self, index):
        return self.transform(folder.default_loader(f"{self.root}/{index:02d}.png"))


class InMemory(Held):
    def __getitem__(self, index):
        return self.transform(PIL.Image.fromarray(self.images[index])), self.labels[index]


@pytest.fixture
def pictures(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (N, 9, 8, 3), np.uint8)
    for place, each in enumerate(pixels):
        PIL.Image.fromarray(each).save(tmp_path / f"{place:02d}.png")
    names = [f"{place:02d}" for place in range(N)]
    return tmp_path, pd.DataFrame({"name": names, "label": range(N)})


def test_pictures_are_decoded_natively(pictures):
    steps = v1.Compose([v1.Resize(6), v1.CenterCrop(5), v1.ToTensor()])
    loader = same(Pictures(*pictures, steps))
    assert "not compared with the dataset, which would open files" in loader.explain()
    same(Joined(*pictures, steps))
    refused(Pictures(*pictures), "a sample contains a Pillow image")
    refused(Pictures(*pictures, lambda image: image), "a lambda is not read")
    refused(Pictures(*pictures, v1.FiveCrop(2)), "FiveCrop is Python code")


def black(*_arguments):
    from PIL import Image

    return Image.new("RGB", (9, 9))


REPLACED = {
    "pil_loader": (folder, "pil_loader", black),
    "wrapped": (folder, "default_loader", functools.wraps(folder.default_loader)(black)),
    "code": (folder.pil_loader, "__code__", black.__code__),
    "Pillow's": (PIL.Image.open, "__code__", black.__code__),
}


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_pictures_of_replaced_loaders_are_theirs(replaced, pictures, monkeypatch):
    dataset = Loaded(*pictures, v1.ToTensor())
    same(dataset)
    monkeypatch.setattr(*replaced)
    same(dataset, "process")


class Branched(Held):
    """One picture, transformed further in two ways."""

    def __getitem__(self, index):
        image = self.transform(PIL.Image.fromarray(self.images[index]))
        return self.first(image), {"again": self.second(image)}


class Same(Held):
    def __getitem__(self, index):
        image = self.transform(PIL.Image.fromarray(self.images[index]))
        return image, image


@pytest.mark.parametrize("kind", [Branched, Same])
def test_what_was_drawn_of_a_picture_is_drawn_once(kind):
    def made(transform, first):
        steps = [transform, v1.ToTensor()]
        both = v1.Compose(steps) if kind is Same else transform
        return kind(images=images, transform=both, first=first, second=v1.ToTensor())

    images = np.random.default_rng(1).integers(0, 256, (23, 9, 8, 3), np.uint8)
    same(made(v1.CenterCrop(6), v1.Compose([v1.Resize(5), v1.ToTensor()])))
    refused(made(v1.RandomCrop(6), v1.ToTensor()), "one picture of random transforms is in a")
    if kind is Branched:  # draws for itself
        first = v1.Compose([v1.RandomCrop(5), v1.ToTensor()])
        assert lanes.choose(Loader(made(v1.CenterCrop(6), first))).lane == "native"


class Extra(Pictures):
    """Samples that are not compared, with a value beside the picture."""

    missing = None
    x = torch.zeros(N, 2)

    def __getitem__(self, index):
        image = PIL.Image.open(f"{self.root}/{self.df['name'].iloc[index]}.png").convert("RGB")
        return self.transform(image), self.extra(index)


class Walrus(Extra):
    def extra(self, index):
        total = 0
        parts = [total := total + value for value in (1, 2, 3)]
        return total + len(parts)


class Sized(Extra):
    def extra(self, index):
        return self.x[index].size(dim=0)


class Numbers(Extra):
    def extra(self, index):
        return self.df.iloc[index, 1:].to_numpy(dtype=np.float32)


class ClassAttribute(Extra):
    def extra(self, index):
        return 1 if getattr(self, "missing", 5) is None else 2


class NoAttribute(Extra):
    def extra(self, index):
        return 1 if getattr(self, "absent") is None else 2  # noqa: B009


@pytest.mark.parametrize(
    ("kind", "lane"),
    [
        (Walrus, "native"),
        (Sized, "native"),
        (Numbers, "process"),
        (ClassAttribute, "process"),
    ],
)
def test_what_no_comparison_would_notice(kind, lane, pictures):
    same(kind(*pictures, v1.ToTensor()), lane)


def test_an_attribute_that_is_missing_is_refused(pictures):
    refused(NoAttribute(*pictures, v1.ToTensor()), "NoAttribute is not known")


def test_pictures_in_memory(pictures):
    images = np.random.default_rng(1).integers(0, 256, (N, 9, 8, 3), np.uint8)
    dataset = InMemory(images=images, labels=[1] * N, transform=v1.ToTensor())
    same(dataset)
    images[3] = 0
    same(dataset)
    dataset.transform = v1.Compose([v1.RandomHorizontalFlip(1.0), v1.ToTensor()])
    same(dataset, "process")  # a set number of workers means their draws
    keyed = Loader(dataset, 4)
    assert lanes.choose(keyed).lane == "native"
    assert_same(list(keyed), list(DataLoader(dataset, 4)))


def test_persistent_iterators_that_look_again_do_not_repeat_draws():
    images = np.random.default_rng(1).integers(0, 256, (N, 9, 8, 3), np.uint8)

    def epochs(label):
        """Returns the pictures of three epochs, behind the first of which all labels become `label`."""
        transform = v1.Compose([v1.RandomCrop(4), v1.ToTensor()])
        dataset = InMemory(images=images, labels=[1] * N, transform=transform)
        torch.manual_seed(5)
        loader = Loader(dataset, 4, persistent_workers=True)
        assert lanes.choose(loader).lane == "native"
        made = [torch.cat([batch for batch, _ in loader])]
        dataset.labels = [label] * N
        return [*made, *(torch.cat([batch for batch, _ in loader]) for _ in range(2))]

    still = epochs(1)
    assert_same(epochs(2), still)
    assert not torch.equal(still[0], still[1])


def test_a_missing_picture_is_pillows_error(pictures):
    root, df = pictures
    df.loc[3, "name"] = "missing"
    dataset = Pictures(root, df, v1.ToTensor())
    with pytest.raises(FileNotFoundError):
        list(Loader(dataset, batch_size=4, **SIZES))
