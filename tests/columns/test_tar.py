"""`Tar` beside webdataset: grouping, kinds of members, damage, and words."""

import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from torch.utils.data import DataLoader
from torchvision import transforms
from webdataset import tariterators

import fastload
from fastload.columns import Tar
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import WORKERS

from .sounds import encode, identical, sound
from .sounds import theirs as recording

pytestmark = MANY_WORKERS

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def pack(path, files, form=tarfile.PAX_FORMAT):
    """Writes (name, bytes) pairs to a tar file."""
    with tarfile.open(path, "w", format=form) as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return Path(path)


def encoded(seed, form="JPEG"):
    """Returns a small picture as a file's bytes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (9 + seed % 3, 12, 3), np.uint8)
    file = io.BytesIO()
    Pillow.fromarray(pixels).save(file, form)
    return file.getvalue()


def array(seed):
    """Returns an array as an `.npy` file's bytes."""
    file = io.BytesIO()
    np.save(file, np.random.default_rng(seed).standard_normal((3, 2)))
    return file.getvalue()


def samples(count, first=0):
    """Returns the files of samples of every kind of member."""
    for number in range(first, first + count):
        key = f"part/{number:04}"
        yield f"{key}.jpg", encoded(number)
        yield f"{key}.cls", b"%d" % (number % 7)
        yield f"{key}.txt", f"text {number} äöü".encode()
        yield f"{key}.npy", array(number)
        yield f"{key}.seg.bin", bytes([number % 256, 0, 255])


def theirs(paths):
    """Returns the samples that webdataset makes of the members, undecoded."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            members = tariterators.tar_file_iterator(file)
            named = ({**member, "__url__": str(path)} for member in members)
            found += tariterators.group_by_keys(named)
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_members_are_those_that_webdataset_finds(tmp_path, form):
    files = [
        ("a.jpg", b"1"),
        ("a.cls", b"2"),
        ("b.c/d.JPG", b"3"),
        ("b.c/d.cls", b"4"),
        ("plain", b"no extension"),
        ("__meta__/x.jpg", b"5"),
        ("__index__", b"6"),
        (".hidden", b"7"),
        ("dir/.jpg", b"8"),
        ("a.jpg", b"again, but no neighbour"),
        ("a.seg.png", b"9"),
        ("x" * 80 + "/" + "y" * 90 + ".txt", b"long"),
        ("e.txt", b""),
        ("ü.txt", b"10"),
    ]
    paths = [
        pack(tmp_path / "0.tar", files, form),
        pack(tmp_path / "1.tar", [("a.jpg", b"11")], form),
    ]
    expected = theirs(paths)
    assert Tar(paths, "__key__").keys == [sample["__key__"] for sample in expected]
    for extension in ("jpg", "cls", "seg.png", "txt"):
        tar = Tar(paths, "__key__")
        lacking = tar._shards.index.lacking([extension])
        assert lacking == [n for n, sample in enumerate(expected) if extension not in sample]
        having = [n for n in range(len(expected)) if n not in lacking]
        blobs = tar._shards.index.members([extension], having)
        column = fastload._lib.plain(blobs, "bytes")
        program = fastload._lib.Program([column], fastload._lib.Leaf(0, "bytes"))
        found = [program.sample(n) for n in range(len(having))]
        assert found == [expected[n][extension] for n in having]


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_the_decoded_files(tmp_path, num_workers):
    paths = [pack(tmp_path / f"{n}.tar", samples(10, 10 * n)) for n in range(3)]
    steps = [transforms.Resize((8, 8)), transforms.ToTensor()]
    tar = Tar(tmp_path.joinpath("*.tar").as_posix(), ("jpg", "cls", "txt", "npy", "seg.bin"), steps)
    compose = transforms.Compose(steps)
    expected = [
        (
            compose(Pillow.open(io.BytesIO(sample["jpg"])).convert("RGB")),
            int(sample["cls"]),
            sample["txt"].decode(),
            torch.from_numpy(np.load(io.BytesIO(sample["npy"]))),
            sample["seg.bin"],
        )
        for sample in theirs(paths)
    ]
    torch.manual_seed(0)
    wanted = list(DataLoader(expected, batch_size=4, shuffle=True))
    torch.manual_seed(0)
    loader = fastload.Loader(tar, batch_size=4, shuffle=True, num_workers=num_workers)
    got = list(loader)
    assert "native" in str(loader.explain())
    for ours, reference in zip(got, wanted, strict=True):
        for a, b in zip(ours, reference, strict=True):
            assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b
    torch.manual_seed(0)
    for ours, reference in zip(DataLoader(tar, batch_size=4, shuffle=True), wanted, strict=True):
        assert torch.equal(ours[0], reference[0])


def test_recordings_and_tensors(tmp_path):
    tensors = [torch.arange(6).view(2, 3) + number for number in range(4)]
    sounds = {kind: sound(50, 2) for kind in ("wav", "flac")}
    files = []
    for number, tensor in enumerate(tensors):
        stored = io.BytesIO()
        torch.save(tensor, stored)
        files.append((f"{number}.pt", stored.getvalue()))
        files += [
            (f"{number}.{kind}", encode(sound, 8000, format=kind)) for kind, sound in sounds.items()
        ]
    tar = Tar([pack(tmp_path / "0.tar", files)], ("pt", "wav", "flac"))
    for number, (tensor, *decoded) in enumerate(tar[at] for at in range(len(tar))):
        assert torch.equal(tensor, tensors[number])
        for ours, kind in zip(decoded, sounds, strict=True):
            path = tmp_path / kind
            path.write_bytes(dict(files)[f"{number}.{kind}"])
            assert identical(ours, recording(path))
    [batch] = fastload.Loader(tar, batch_size=4, num_workers=2)
    assert torch.equal(batch[0], torch.stack(tensors))
    assert batch[1].shape == (4, 2, 50)


def test_without_members_every_common_extension_is_there(tmp_path):
    path = pack(tmp_path / "0.tar", [*samples(2), ("z.txt", b"z"), ("z.cls", b"1")])
    tar = Tar([path])
    assert list(tar[0]) == ["__key__", "cls", "txt"]
    assert tar[0]["__key__"] == "part/0000"
    assert tar[2]["txt"] == "z"
    assert int(tar[-1]["cls"]) == 1


def test_structures_alternatives_and_dropping(tmp_path):
    files = [
        ("a.png", encoded(1, "PNG")),
        ("a.cls", b" 5\n"),
        ("b.jpg", encoded(2)),
        ("c.cls", b"7"),
    ]
    path = pack(tmp_path / "0.tar", files)
    tar = Tar([path], {"image": "jpg;png", "meta": ["cls", "__key__"]}, missing="drop")
    assert len(tar) == 1
    assert tar[0]["image"].shape == (10, 12, 3)
    assert int(tar[0]["meta"][0]) == 5
    assert tar.keys == ["a"]
    with pytest.raises(
        ValueError, match=r"sample 'b' of .*0\.tar has no 'cls', and 2 of 3 samples"
    ):
        Tar([path], ("jpg;png", "cls"))
    with pytest.raises(ValueError, match="several kinds"):
        Tar([path], "jpg;cls", missing="drop")
    with pytest.raises(ValueError, match=r"no extension is in all 3 samples, found .*png \(1\)"):
        Tar([path])
    with pytest.raises(TypeError, match="members are extensions"):
        Tar([path], (1, 2))


@pytest.mark.parametrize("text", [b"12", b" -3\n", b"+4", b"1_000", b"9223372036854775807"])
def test_whole_numbers_are_pythons(tmp_path, text):
    tar = Tar([pack(tmp_path / "0.tar", [("a.cls", text)])], "cls")
    assert tar[0].dtype == torch.int64
    assert int(tar[0]) == int(text)


@pytest.mark.parametrize(
    "text", [b"", b"1.5", b"x", b"1__0", b"_1", b"9223372036854775808", b"\xff"]
)
def test_what_is_no_whole_number_is_named(tmp_path, text):
    path = pack(tmp_path / "0.tar", [("a.cls", text), ("b.cls", b"1")])
    loader = iter(fastload.Loader(Tar([path], "cls"), batch_size=1))
    with pytest.raises(OSError, match=r"0\.tar.*not an integer"):
        next(loader)
    assert next(loader).tolist() == [1]


def test_sizes_that_are_not_there_allocate_nothing(tmp_path):
    header = tarfile.TarInfo("a.bin")
    header.size = 1 << 60
    path = tmp_path / "0.tar"
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"x" * 1024)
    with pytest.raises(OSError, match=r"0\.tar.*'a\.bin' is cut off|0\.tar.*\"a\.bin\" is cut off"):
        Tar([path])


def test_compressed_twice_and_no_shards(tmp_path):
    path = tmp_path / "0.tar.gz"
    with tarfile.open(path, "w:gz"):
        pass
    with pytest.raises(OSError, match="gunzip"):
        Tar([path])
    twice = pack(tmp_path / "1.tar", [("a.jpg", b"1"), ("a.JPG", b"2")])
    with pytest.raises(OSError, match="there twice"):
        Tar([twice])
    with pytest.raises(FileNotFoundError, match=r"2\.tar"):
        Tar([tmp_path / "2.tar"])
    with pytest.raises(ValueError, match="is a URL"):
        Tar("https://example.org/{000..009}.tar")


def test_a_shard_that_changes_is_an_error_that_says_so(tmp_path):
    path = pack(tmp_path / "0.tar", samples(3))
    tar = Tar([path], ("cls", "txt"))
    assert tar[0][1].startswith("text")
    pack(path, samples(4))
    with pytest.raises(OSError, match=r"0\.tar.*changed since"):
        tar[1]
    assert len(Tar([path], "cls")) == 4


def test_pickles_are_small_and_workers_read_the_same(tmp_path):
    path = pack(tmp_path / "0.tar", samples(20))
    tar = Tar([path], ("cls", "txt"))
    again = pickle.loads(pickle.dumps(tar))
    assert len(pickle.dumps(tar)) < 500
    assert again[7] == tar[7]
    column = tar.column("cls")
    assert len(pickle.dumps(column)) < 400  # nothing for each sample
    assert pickle.loads(pickle.dumps(column))[7] == column[7]
    workers = DataLoader(tar, batch_size=5, num_workers=2)
    for ours, reference in zip(workers, fastload.Loader(tar, batch_size=5), strict=True):
        assert torch.equal(ours[0], reference[0])
        assert ours[1] == reference[1]


class Named(Tar):
    def __init__(self, folder, name):
        super().__init__([folder / "0.tar"], ("cls", "txt"))
        self.name = name

    def __getitem__(self, index):
        return self.name, super().__getitem__(index)


def test_a_subclass_pickles_as_itself(tmp_path):
    pack(tmp_path / "0.tar", samples(20))
    named = Named(tmp_path, "first")
    again = pickle.loads(pickle.dumps(named))
    assert type(again) is Named
    assert again[7] == named[7]


def test_many_shards_are_indexed_on_the_pool(tmp_path):
    paths = [pack(tmp_path / f"{n:03}.tar", [(f"{n}.cls", b"%d" % n)]) for n in range(100)]
    tar = Tar(paths, "cls")
    assert [int(tar[n]) for n in range(100)] == list(range(100))
    assert repr(tar) == "Tar(100 shards, 100 samples of 'cls')"
