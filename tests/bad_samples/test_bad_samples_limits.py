"""The account of bad samples: limits, the file, the log, and arguments that are refused."""

import json
import logging
import os
import pickle
from pathlib import Path

import pytest
import torch
import torch.utils.data
from torch.utils.data import (
    BatchSampler,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

import fastload
from fastload import BadSamplesError, Loader, OnError
from tests.shared.compare import outcomes

from .bad import BAD, COUNT, MISSING, path_of, places, write_images

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = pytest.mark.timeout(240)

LANES = {
    "native": {"lane": "native", "num_workers": 2},
    "inline": {"num_workers": 0},
    "processes": {"lane": "process", "num_workers": 2},
}
EACH_LANE = pytest.mark.parametrize("lane", LANES)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    write_images(root)
    dataset = ImageFolder(root, transforms.ToTensor())
    for number in MISSING:
        path_of(root, number).unlink()
    return dataset


def loader_of(dataset, lane, action="replace", batch_size=16, **options):
    on_error = OnError(action, **{"max_share": 1} | options)
    return Loader(dataset, batch_size, on_error=on_error, **LANES[lane])


def until_error(loader):
    """Returns how many batches come before the error, and the error."""
    taken = outcomes(loader)
    number = next(at for at, batch in enumerate(taken) if isinstance(batch, Exception))
    assert isinstance(taken[number], BadSamplesError)
    return number, str(taken[number])


@EACH_LANE
@pytest.mark.parametrize(
    ("options", "batches", "words"),
    [
        ({"max_count": 3}, 4, "4 samples are bad, and max_count=3"),
        ({"max_in_row": 1}, 0, "2 samples one after the other are bad, and max_in_row=1"),
    ],
)
def test_a_limit_ends_the_epoch_at_the_same_batch(images, lane, options, batches, words):
    count, said = until_error(loader_of(images, lane, **options))
    assert count == batches
    assert words in said
    assert (
        f"(rank 0, epoch 0): repair or exclude these samples, or raise {next(iter(options))} of on_error: "
        in said
    )
    assert f"sample {BAD[0]} ({images.samples[BAD[0]][0]})" in said


@EACH_LANE
def test_neighbours_count_across_batches(images, lane):
    assert {127, 128} <= set(BAD)
    count, said = until_error(loader_of(images, lane, max_in_row=1, batch_size=4))
    assert count == 1, said
    order = [5, 0, 1, 127, 128, 2, 3, 4]
    subset = torch.utils.data.Subset(images, order)
    count, said = until_error(loader_of(subset, lane, max_in_row=1, batch_size=4))
    assert (count, "2 samples one after the other" in said) == (1, True)


class Every(Dataset):
    """Fails for each so many-th sample."""

    def __init__(self, count, every):
        self.count, self.every = count, every

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index % self.every == 0:
            msg = f"sample {index} is torn"
            raise ValueError(msg)
        return index


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_share_counts_from_the_thousandth_sample_on(num_workers):
    def loader_of(count):
        return Loader(
            Every(count, 50), 10, num_workers=num_workers, on_error=OnError("skip", max_share=0.01)
        )

    assert sum(len(batch) for batch in loader_of(990)) == 970
    count, said = until_error(loader_of(2000))
    assert count == 99
    assert "20 of 1000 samples are bad, and max_share=0.01" in said
    assert "; and 10 more." in said


@EACH_LANE
@pytest.mark.parametrize("action", ["replace", "mask", "skip"])
def test_a_batch_without_a_good_sample_is_an_error_in_its_place(images, lane, action):
    loader = Loader(
        images,
        batch_sampler=[[0, 1], [5, 64, 6], [2, 3]],
        on_error=OnError(action, max_share=1),
        **LANES[lane],
    )
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(BadSamplesError, match="all 3 samples of batch 1 are bad") as raised:
        next(iterator)
    assert "FileNotFoundError" in str(raised.value)
    assert next(iterator)[0].shape[0] == 2
    assert places(loader) == [(1, 0, 5), (1, 1, 64), (1, 2, 6)]


class Late(Dataset):
    """Its first ten samples are bad."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        if index < 10:
            raise ValueError(index)
        return index


@pytest.mark.parametrize("lane", ["inline", "processes"])
def test_batches_that_are_all_bad_count_for_the_row(lane):
    iterator = iter(loader_of(Late(), lane, batch_size=4, max_in_row=9))
    for batch in range(2):
        with pytest.raises(BadSamplesError, match=f"all 4 samples of batch {batch} are bad"):
            next(iterator)
    with pytest.raises(BadSamplesError, match="10 samples one after the other are bad"):
        next(iterator)
    assert next(iterator).tolist() == [12, 13, 14, 15]


@EACH_LANE
def test_the_file_has_a_line_for_each_bad_sample(images, lane, tmp_path):
    file = tmp_path / "bad.jsonl"
    loader = loader_of(images, lane, quarantine=file)
    for _ in range(2):  # what has not changed is written once
        list(loader)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["index"] for line in lines] == BAD
    for line, bad in zip(lines, loader.bad, strict=True):
        path = images.samples[line["index"]][0]
        stamp = os.stat(path) if line["index"] not in MISSING else None  # noqa: PTH116
        assert line["path"] == str(path)
        assert line["size"] == (stamp and stamp.st_size)
        assert line["mtime_ns"] == (stamp and stamp.st_mtime_ns)
        assert {name: line[name] for name in ("batch", "position", "reason", "error")} == {
            "batch": bad.batch,
            "position": bad.position,
            "reason": bad.reason,
            "error": bad.error,
        }


def test_a_restart_writes_no_line_again(images, tmp_path):
    file = tmp_path / "bad.jsonl"
    for _ in range(3):
        list(loader_of(images, "inline", quarantine=file))
    assert [json.loads(line)["index"] for line in file.read_text().splitlines()] == BAD


def test_a_torn_line_swallows_no_sample(images, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"epoch": 0, "batch": 1, "posi')
    list(loader_of(images, "inline", quarantine=file))
    torn, *lines = file.read_text().splitlines()
    assert torn.endswith('"posi')
    assert [json.loads(line)["index"] for line in lines] == BAD


@pytest.mark.parametrize("quarantine", ["", "\0", "bad\0.jsonl"])
def test_a_quarantine_that_names_no_file_is_refused(quarantine):
    with pytest.raises(ValueError, match="quarantine should be the path of a file, but got"):
        OnError("replace", quarantine=quarantine)


def test_a_repaired_file_is_back_in_the_next_epoch(tmp_path):
    write_images(tmp_path)
    dataset = ImageFolder(tmp_path, transforms.ToTensor())
    loader = loader_of(dataset, "native", quarantine=tmp_path / "bad.jsonl")
    list(loader)
    torn = [bad.index for bad in loader.bad]
    path_of(tmp_path, torn[0]).write_bytes(path_of(tmp_path, 0).read_bytes())
    list(loader)
    assert [bad.index for bad in loader.bad] == torn[1:]


def test_each_rank_has_a_file_of_its_own(images, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = loader_of(images, "inline", quarantine=tmp_path / "bad.jsonl", max_count=3)
    _, said = until_error(loader)
    assert "(rank 3, epoch 0)" in said
    assert said.endswith("The other 3 ranks wait for this one now.")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.rank3.jsonl"]
    monkeypatch.setenv("RANK", "0")
    loader = loader_of(images, "inline", quarantine=tmp_path / "bad.jsonl", max_count=3)
    _, said = until_error(loader)
    assert "(rank 0, epoch 0)" in said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.jsonl", "bad.rank3.jsonl"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
@EACH_LANE
def test_a_full_disk_ends_the_file_and_not_the_epoch(images, lane, caplog):
    loader = loader_of(images, lane, quarantine="/dev/full")
    with caplog.at_level(logging.WARNING, "fastload"):
        assert len(list(loader)) == COUNT / 16
    said = [record.message for record in caplog.records if "/dev/full" in record.message]
    assert len(said) == 1
    assert "No space left on device; from here on they are only in loader.bad" in said[0]
    assert [bad.index for bad in loader.bad] == BAD


def test_bad_samples_are_logged_at_powers_of_two_and_after_the_epoch(images, caplog):
    loader = loader_of(images, "native")
    with caplog.at_level(logging.WARNING, "fastload"):
        list(loader)
    said = [record.message for record in caplog.records]
    counts = [line.split()[2] for line in said if line.startswith("bad sample")]
    assert counts == ["1", "2", "4", "8"]
    reasons = f"decode: {len(BAD) - len(MISSING)}, missing: {len(MISSING)}"
    words = f"epoch 0: {len(BAD)} of {COUNT} samples are bad ({reasons}), and were not evaluated"
    assert said[-1] == words


@pytest.mark.parametrize(
    ("sampler", "is_evaluation"),
    [
        (BatchSampler(SequentialSampler(range(COUNT)), 16, drop_last=False), True),
        (BatchSampler(RandomSampler(range(COUNT)), 16, drop_last=False), False),
        (list(BatchSampler(RandomSampler(range(COUNT)), 16, drop_last=False)), False),
    ],
)
def test_samples_of_a_training_are_not_said_to_be_evaluated(images, caplog, sampler, is_evaluation):
    with caplog.at_level(logging.WARNING, "fastload"):
        list(
            Loader(
                images,
                batch_sampler=sampler,
                num_workers=0,
                on_error=OnError("replace", max_share=1),
            )
        )
    assert caplog.records[-1].message.endswith(", and were not evaluated") is is_evaluation


def test_the_list_is_that_of_the_epoch(images):
    loader = loader_of(images, "native")
    assert loader.bad == []
    for epoch in range(2):
        list(loader)
        assert [bad.index for bad in loader.bad] == BAD
        assert {bad.epoch for bad in loader.bad} == {epoch}
    iterator = iter(loader)
    assert loader.bad == []
    next(iterator)
    assert len(loader.bad) == len([index for index in BAD if index < 16])


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (IndexError, ["no such sample"]),
        (MemoryError, []),
        (ImportError, ["no library"]),
        (NameError, ["name"]),
        (OSError, [24, "Too many open files"]),
        (OSError, [28, "No space left on device"]),
        (torch.OutOfMemoryError, ["CUDA out of memory"]),
        (RuntimeError, ["CUDA error: device-side assert triggered"]),
    ],
)
def test_what_is_no_sample_s_own_is_raised(num_workers, kind, words):
    loader = Loader(Raising(kind(*words)), 4, num_workers=num_workers, on_error="replace")
    with pytest.raises(Exception) as raised:  # noqa: PT011 (torch wraps some of them)
        list(loader)
    assert not isinstance(raised.value, BadSamplesError)


@pytest.mark.parametrize("cause", [None, ValueError("why")])
def test_an_error_of_a_list_keeps_its_cause(cause):
    class Lists(Raising):
        def __getitems__(self, indices):
            msg = "full"
            raise MemoryError(msg) from cause

    loader = Loader(Lists(None), 4, num_workers=0, on_error="replace")
    with pytest.raises(MemoryError) as raised:
        list(loader)
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("a/1.txt", "a/1.txt"),
        ("1.jpg", "1.jpg"),
        ("a/b", "a/b"),
        (("1.jpg", 3), "1.jpg"),
        (Path("name"), "name"),
        ("A sentence of a document. And another one.", ""),
        ("one line/\nand another.txt", ""),
        ("long/" * 1000, ""),
    ],
)
def test_texts_are_no_paths(entry, path):
    class Texts(Raising):
        def __init__(self):
            super().__init__(ValueError())
            self.files = [entry] * 8

    loader = Loader(Texts(), 4, num_workers=0, on_error=OnError("replace", max_share=1))
    list(loader)
    assert [bad.path for bad in loader.bad] == [path]


class Raising(Dataset):
    """Raises an exception for sample 2."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 2:
            raise self.error
        return index


@pytest.mark.parametrize("num_workers", [0, 2])
def test_only_the_given_exceptions_make_a_sample_bad(num_workers):
    def loader_of(*only):
        on_error = OnError("skip", only=only)
        return Loader(
            Raising(IndexError("short record")), 4, num_workers=num_workers, on_error=on_error
        )

    assert [batch.tolist() for batch in loader_of(ValueError, IndexError)] == [
        [0, 1, 3],
        [4, 5, 6, 7],
    ]
    with pytest.raises(IndexError, match="short record"):
        list(loader_of(ValueError))


def test_a_sample_that_does_not_fit_is_no_bad_sample(images):
    loader = Loader([torch.zeros(1), torch.zeros(2)], 2, num_workers=0, on_error="replace")
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"on_error": "ignore"}, ValueError, "should be one of"),
        ({"on_error": 3}, TypeError, "an OnError, but got 3"),
        ({"on_error": "substitute"}, ValueError, "needs the sample"),
        ({"on_error": "replace", "batch_size": None}, ValueError, "set batch_size"),
        ({"on_error": "mask", "dataset": Endless()}, ValueError, "map-style.*__iter__"),
    ],
)
def test_arguments_of_the_loader_that_are_refused(arguments, kind, words):
    with pytest.raises(kind, match=words):
        Loader(**{"dataset": range(3)} | arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"max_share": 2}, ValueError, "max_share should be a share from 0 to 1"),
        ({"max_count": -1}, ValueError, "max_count should be at least 0"),
        ({"retries": -1}, ValueError, "retries should be at least 0"),
        ({"retries": 1.5}, TypeError, "retries should be an integer"),
        ({"only": ValueError}, TypeError, "a tuple of exceptions"),
        ({"only": (MemoryError,)}, ValueError, "only=MemoryError is not an error of a sample"),
        ({"substitute": 1}, ValueError, "is for the action 'substitute'"),
    ],
)
def test_policies_that_are_refused(arguments, kind, words):
    with pytest.raises(kind, match=words):
        OnError("replace", **arguments)


def test_a_substitute_is_no_native_sample(images):
    on_error = OnError("substitute", substitute=images[0])
    with pytest.raises(ValueError, match="puts a sample of Python into batches"):
        Loader(images, 4, on_error=on_error, lane="native")
    assert "lane: native" not in Loader(images, 4, on_error=on_error).explain()


def test_policies_and_loaders_pickle(images):
    on_error = OnError("skip", only=(ValueError,), max_count=3)
    assert pickle.loads(pickle.dumps(on_error)) == on_error
    loader = pickle.loads(pickle.dumps(Loader(images, 16, on_error=on_error)))
    assert loader.on_error == on_error
    assert loader.bad == []


def test_a_loader_made_of_another_keeps_on_error(images):
    loader = Loader(images, 16, on_error="skip")
    assert Loader.from_torch(loader, batch_size=8).on_error == "skip"
    assert fastload.Loader(images).on_error == "raise"
