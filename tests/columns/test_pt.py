"""`Pt` beside `torch.load(weights_only=True)`: dtypes, views, storages, dicts, damage."""

import collections
import dataclasses
import io
import struct
import zipfile

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Pt
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

from .damage import scattered, tally
from .formats import FORMATS, read_pt

pytestmark = MANY_WORKERS

DTYPES = [
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
    torch.float8_e8m0fnu,
]
BASE = torch.arange(120.0).reshape(4, 5, 6)
VIEWS = {
    "whole": BASE,
    "number": torch.tensor(3.5),
    "one of many": BASE[2, 3, 4],
    "empty": torch.zeros(0),
    "no rows": BASE[2:2],
    "no columns": torch.zeros(3, 0, 2),
    "rows": BASE[1:3],
    "columns": BASE[:, :, 2:4],
    "steps": BASE[::2, 1::2, ::3],
    "transposed": BASE.permute(2, 0, 1),
    "channels last": BASE[None].to(memory_format=torch.channels_last),
    "repeated": torch.arange(3.0).expand(4, 3),
    "windows": torch.arange(10.0).unfold(0, 4, 2),
    "ones": torch.zeros(1, 3, 1, 1),
    "other bytes": torch.arange(8, dtype=torch.uint8).view(torch.float32),
}


def values(dtype, shape, seed=0):
    """Elements of small integers, whatever the dtype."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2 if dtype == torch.bool else 100, shape, generator=generator).to(dtype)


def save(folder, samples):
    """Writes one file for each sample."""
    paths = [folder / f"{number:04}.pt" for number in range(len(samples))]
    for path, sample in zip(paths, samples, strict=True):
        torch.save(sample, path)
    return paths


def load(path, key=None):
    loaded = torch.load(path, weights_only=True, map_location="cpu")
    return loaded if key is None else loaded[key]


def equal(ours, theirs):
    """True if two tensors have the same dtype, shape and bits."""
    theirs = theirs.detach().resolve_conj().contiguous()
    return (
        ours.dtype == theirs.dtype
        and ours.shape == theirs.shape
        and ours.is_contiguous()
        and torch.equal(ours.reshape(-1).view(torch.uint8), theirs.reshape(-1).view(torch.uint8))
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_every_dtype_is_torchs(tmp_path, dtype):
    for shape in [(), (1,), (0,), (3, 5), (2, 0, 4)]:
        [path] = save(tmp_path, [values(dtype, shape)])
        assert equal(Pt([path])[0], load(path))
    [path] = save(tmp_path, [values(dtype, (4, 6)).t()[1:4]])
    assert equal(Pt([path])[0], load(path))


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_views_come_out_in_c_order(tmp_path, view):
    [path] = save(tmp_path, [view])
    assert equal(Pt([path])[0], load(path))
    [path] = save(tmp_path, [{"a": view, "b": BASE}])
    assert equal(Pt([path], key="a")[0], load(path, "a"))


def test_no_more_is_read_than_lies_between_the_first_and_the_last_element(tmp_path):
    [path] = save(tmp_path, [torch.zeros(1000, 100)[10:20]])
    loader = fastload.Loader(Pt([path]), batch_size=1, num_workers=1)
    next(batches := iter(loader))
    assert batches is not None
    assert loader.stats()["read_bytes"] == 10 * 100 * 4


def test_dicts_shared_storages_and_what_lies_beside_tensors(tmp_path):
    sample = {
        "x": BASE[1],
        "y": BASE[:, 2],
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "buffer": torch.nn.Parameter(torch.arange(3), requires_grad=False),
        "label": 3,
        "id": "ä",
        "more": [1.5, None, (True, 2**40), {"deep": torch.zeros(2)}, -5, 300, -70000],
        7: torch.zeros(1),
    }
    [path] = save(tmp_path, [sample])
    for key in ("x", "y", "parameter", "buffer"):
        assert equal(Pt([path], key)[0], load(path, key))
    assert not Pt([path], "parameter")[0].requires_grad
    for key in ("label", "id", "more"):
        with pytest.raises(OSError, match=r"it holds an? (int|str|list) where a tensor"):
            Pt([path], key)
    with pytest.raises(OSError, match=r"give key=, one of \"x\", \"y\""):
        Pt([path])
    with pytest.raises(OSError, match=r"no \"z\"; it has \"x\""):
        Pt([path], "z")


def test_the_weights_of_a_module_are_a_dict(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    [path] = save(tmp_path, [module.state_dict()])
    for key in ("0.weight", "0.bias", "1.running_var", "1.num_batches_tracked"):
        assert equal(Pt([path], key)[0], load(path, key))


def test_many_tensors_and_long_memories(tmp_path):
    sample = {f"tensor{number}": torch.full((number % 3,), number) for number in range(300)}
    [path] = save(tmp_path, [sample])
    for key in ("tensor0", "tensor1", "tensor299"):
        assert equal(Pt([path], key)[0], load(path, key))


@pytest.mark.parametrize("protocol", [2, 3])
def test_protocols_that_torch_reads(tmp_path, protocol):
    path = tmp_path / "a.pt"
    torch.save(BASE, path, pickle_protocol=protocol)
    assert equal(Pt([path])[0], BASE)


def rewritten(path, change):
    """Writes an archive again, its members changed by `change(name, contents)`."""
    with zipfile.ZipFile(path) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    with zipfile.ZipFile(path, "w") as file:
        for name, contents in members:
            if (changed := change(name.partition("/")[2], contents)) is not None:
                file.writestr(name, changed)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, torch.float64, torch.complex64])
def test_the_other_byte_order_is_turned_around(tmp_path, dtype):
    [path] = save(tmp_path, [values(dtype, (3, 4))])
    rewritten(path, lambda name, contents: b"big" if name == "byteorder" else contents)
    theirs = load(path)
    assert not torch.equal(theirs, values(dtype, (3, 4)))
    assert equal(Pt([path])[0], theirs)


def test_files_without_a_byte_order_are_little(tmp_path):
    [path] = save(tmp_path, [BASE])
    rewritten(path, lambda name, contents: None if name == "byteorder" else contents)
    assert equal(Pt([path])[0], load(path))


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(tmp_path, num_workers):
    samples = [values(torch.bfloat16, (30, 40), seed) for seed in range(50)]
    paths = save(tmp_path, [s if n % 3 else s.t().clone().t() for n, s in enumerate(samples)])
    assert_as_torchs(Pt(paths), [load(path) for path in paths], 8, num_workers=num_workers)


def refusal(path, key=None):
    """What is said of one file."""
    with pytest.raises(OSError, match=str(path)) as refused:
        Pt([path], key)[0]
    return str(refused.value)


class Other:
    """Something that is no tensor."""


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (Other(), "Other"),
        ({"x": BASE, "other": Other()}, "Other"),
        (3, "holds an int"),
        ("text", "holds a str"),
        (None, "holds None"),
        ([BASE], "holds a list"),
        ((BASE,), "holds a tuple"),
        (np.arange(3), "numpy"),
        (collections.Counter("a"), "Counter"),
        (torch.zeros(3).to_sparse(), "_rebuild_sparse_tensor"),
        (torch.zeros(2, device="meta"), "_rebuild_meta_tensor"),
        (torch.zeros(2, dtype=torch.complex64).conj(), "conjugated"),
        (torch.zeros(2, dtype=torch.complex64).conj().imag, "negated"),
        (torch.zeros(2).untyped_storage(), "holds a storage"),
        (torch.zeros(1).expand(10**9), "repeats few elements"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_tensor_is_refused_by_name(tmp_path, sample, words):
    [path] = save(tmp_path, [sample])
    assert words in refusal(path)


def test_a_tensor_with_attributes_is_refused_by_name(tmp_path):
    tensor = torch.zeros(2)
    tensor.note = "here"
    [path] = save(tmp_path, [tensor])
    assert "_rebuild_from_type_v2" in refusal(path)


def test_a_pickle_that_would_run_code_runs_none(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (tmp_path / "bomb").touch, ()

    [path] = save(tmp_path, [{"x": BASE, "bomb": Bomb()}])
    assert "tmp_path" not in refusal(path, "x")
    assert not (tmp_path / "bomb").exists()


def test_older_files_and_modules_are_refused_with_words(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(BASE, path, _use_new_zipfile_serialization=False)
    assert "since version 1.6" in refusal(path)
    [path] = save(tmp_path, [BASE])
    rewritten(path, lambda name, contents: b"11\n" if name == "version" else contents)
    with pytest.raises(RuntimeError, match="version 11"):
        load(path)
    assert 'version "11"' in refusal(path)
    [path] = save(tmp_path, [BASE])
    with pytest.raises(OSError, match="holds a tensor, no dict"):
        Pt([path], "x")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("0000/constants.pkl", b"")
    assert "TorchScript" in refusal(path)


def small(sample):
    whole = io.BytesIO()
    torch.save(sample, whole)
    return whole.getvalue()


@pytest.mark.parametrize("seed", range(4))
def test_pickles_of_random_damage_are_refused_or_what_torch_reads(tmp_path, seed):
    whole = small({"x": BASE[1:, ::2], "y": BASE[0]})
    pickled = range(whole.index(b"\x80\x02}"), whole.index(b"PK\x07\x08"))
    form = dataclasses.replace(
        FORMATS["pt"], ours=lambda path: Pt([path], "x")[0], theirs=lambda path: read_pt(path, "x")
    )
    table = tally(form, tmp_path, scattered(whole, 100, pickled, seed))
    assert table.read_alone == []
    assert table.differ == []


def test_claimed_sizes_allocate_nothing(tmp_path):
    [path] = save(tmp_path, [torch.zeros(2, 3)])
    large = b"J" + struct.pack("<i", 2**31 - 1)
    tuples = [b"K\x02K\x03\x86", b"K\x03K\x01\x86"]
    with zipfile.ZipFile(path) as file:
        pickled = file.read("0000/data.pkl")
    for sizes, strides in [
        (large * 2 + b"\x86", b"K\x00K\x00\x86"),
        (large * 2 + b"\x86", large * 2 + b"\x86"),
    ]:
        changed = pickled.replace(tuples[0], sizes).replace(tuples[1], strides)
        [path] = save(tmp_path, [torch.zeros(2, 3)])
        rewritten(path, lambda name, contents, to=changed: to if name == "data.pkl" else contents)
        assert any(words in refusal(path) for words in ("repeats", "beyond its storage"))


def test_the_column_is_small_when_pickled_and_reads_its_files_again(tmp_path):
    paths = save(tmp_path, [{"x": values(torch.float32, (1000,), n)} for n in range(3)])
    column = Pt(tmp_path.glob("*.pt"), "x")
    again = reread(column, 1000)
    assert repr(column) == "Pt(3 files, 'x' of each, of float32, shape (1000,))"
    assert len(again) == len(paths)
    assert torch.equal(column[np.int64(-1)], column[2])
    with pytest.raises(IndexError):
        column[3]
    with pytest.raises(ValueError, match="is a URL"):
        Pt(["s3://bucket/a.pt"])
    with pytest.raises(OSError, match="no file"):
        Pt([])
