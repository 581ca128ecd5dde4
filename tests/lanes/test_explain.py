"""What a loader says of itself: lane, seam, leaves, and what would make it native."""

import sys
import textwrap

import pytest
import torch
import torchvision.datasets
from torch.utils.data import (
    BatchSampler,
    Dataset,
    IterableDataset,
    SequentialSampler,
    StackDataset,
    Subset,
    TensorDataset,
)
from torchvision import transforms as v1

from fastload import AUTO, Loader, explain, lanes
from tests.lowering.torchvision_files import cifar10, write_folder
from tests.shared import interpreter


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("images"))


def explained(dataset, **arguments):
    """Returns the topics of an explanation with their words."""
    lines = Loader(dataset, **{"num_workers": 1, **arguments}).explain().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_a_folder_of_images(root):
    steps = [v1.RandomResizedCrop(16), v1.RandomHorizontalFlip(), v1.ToTensor()]
    words = explained(torchvision.datasets.ImageFolder(root, v1.Compose(steps)))
    assert words["lane"].startswith("native")
    assert "to make it native" not in words
    assert words["dataset[0]"] == (
        "10 files; decoded from JPEG, PNG and WebP files to RGB; RandomResizedCrop, "
        "RandomHorizontalFlip, ToTensor; stacked; bit for bit what Pillow and torch make of them, "
        "given equal random parameters; these are drawn by Philox from the same ranges"
    )
    assert words["dataset[1]"] == "10 numbers; stacked; bit for bit"


def test_the_seam_of_a_chain(root):
    steps = [v1.Resize((8, 8)), v1.ToTensor(), lambda image: image, v1.CenterCrop(8)]
    words = explained(torchvision.datasets.ImageFolder(root, v1.Compose(steps)))
    assert words["lane"].startswith("process")
    assert words["why"].endswith("<lambda> is Python code, at position 2 of transform")
    assert words["seam"].startswith("dataset[0] is native up to ToTensor; ")
    assert words["seam"].endswith("CenterCrop in Python, in worker processes")
    assert words["to make it native"] == "use a transform of torchvision in its place"
    steps = [v1.Resize((8, 8)), lambda image: image, v1.ToTensor()]  # on Pillow images of files
    words = explained(torchvision.datasets.ImageFolder(root, v1.Compose(steps)))
    assert words["why"].endswith("<lambda> is Python code, at position 1 of transform")
    assert "seam" not in words


class Stream(IterableDataset):
    def __iter__(self):
        return iter(open(self.path))  # noqa: PTH123


def test_pictures_of_streams_do_not_wait():
    words = explained(Stream())
    assert words["lane"].startswith("process")
    assert "pictures" not in words
    assert "pictures" in explained([object()])


class Held(IterableDataset):
    def __init__(self):
        self.position = iter(range(3))

    def __iter__(self):
        return self.position


def test_a_stream_of_the_training_thread_draws_as_in_one_worker():
    does = "the training thread makes the batches; "
    words = explained(Held(), num_workers=AUTO)
    assert words["lane"] == f"consumer ({does}the dataset draws as it does in one worker)"
    words = explained(Listed([iter([1.0])]), num_workers=AUTO)
    assert words["lane"] == f"consumer ({does}each sample has its own random stream)"


def test_the_seam_of_a_collation(root):
    steps = [v1.Resize((8, 8)), v1.ToTensor()]
    dataset = torchvision.datasets.ImageFolder(root, v1.Compose(steps))
    words = explained(dataset, collate_fn=dict)
    assert words["why"] == "collate_fn is dict, Python code"
    assert words["seam"] == (
        "samples are native; dict makes their batches in Python, in worker processes"
    )
    assert words["to make it native"] == "leave collate_fn out, for torch's default_collate"


class Listed:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[hash(index)]  # a function that is not read


def collation(samples):
    return samples


def test_all_obstacles_are_named(root):
    words = explained(Listed([1.0, 2.0]), collate_fn=collation)
    module, line = __name__, Listed.__getitem__.__code__.co_firstlineno + 1
    assert words["why"] == (
        f"{module}.Listed makes its samples in Python: it calls hash, which fastload cannot read "
        f"(line {line} of __getitem__); collate_fn is {module}.collation, Python code"
    )
    assert words["to make it native"] == (
        "describe them by fastload.columns in a fastload.Dataset, "
        "and leave collate_fn out, for torch's default_collate"
    )


def test_all_python_of_a_chain_is_named(root):
    steps = [v1.Resize((8, 8)), collation, v1.CenterCrop(8), v1.FiveCrop(2), collation, Listed([])]
    module = __name__
    words = explained(
        torchvision.datasets.ImageFolder(root, v1.Compose(steps), target_transform=collation),
        collate_fn=collation,
    )
    assert words["why"] == (
        f"{module}.collation is Python code, at position 1 of transform; Python code behind it: "
        f"torchvision.transforms.transforms.FiveCrop, {module}.collation, {module}.Listed; "
        f"target_transform is {module}.collation, Python code; "
        f"collate_fn is {module}.collation, Python code"
    )
    assert words["to make it native"].count(", and ") == 2


def test_an_obstacle_is_named_once(root):
    images = torchvision.datasets.ImageFolder(root, collation)
    words = explained(StackDataset(images, images))
    assert words["why"] == f"{__name__}.collation is Python code, at position 0 of transform"
    words = explained(torchvision.datasets.ImageFolder(root), collate_fn=collation)
    assert words["why"] == (
        "its samples are Pillow images, not tensors; "
        f"collate_fn is {__name__}.collation, Python code"
    )


def test_datasets_that_hold_others(tmp_path):
    dataset = cifar10(tmp_path, transform=v1.ToTensor())
    words = explained(Subset(dataset, range(7)))
    assert words["dataset[0]"].startswith(
        "7 of 50 images in memory; ToTensor; stacked; bit for bit"
    )
    assert words["dataset[1]"] == "7 of 50 numbers; stacked; bit for bit"


def test_batches_that_the_sampler_names():
    dataset = TensorDataset(torch.zeros(6, 2))
    order = BatchSampler(SequentialSampler(dataset), 2, drop_last=False)
    words = explained(dataset, sampler=order, batch_size=None)
    assert words["order"].startswith("torch's SequentialSampler")
    assert words["dataset[0]"] == "6 rows of float32, shape (2,); stacked; bit for bit"
    one_by_one = explained(dataset, batch_size=None)
    assert one_by_one["dataset[0]"].endswith("one by one; bit for bit")


def test_no_workers_still_tells_what_is_missing():
    words = explained([object()], num_workers=0)
    assert words["lane"].startswith("inline")
    assert words["to make it native"].startswith("leave num_workers at AUTO, and describe them")


FACTORIES = """
    import torch
    from torch.utils.data import TensorDataset
    from fastload import Loader

    def dataset():
        return TensorDataset(torch.zeros(5))

    def loader():
        return Loader(dataset(), 2, collate_fn=list, num_workers=1)

    def torchs():
        return torch.utils.data.DataLoader(dataset(), 2, collate_fn=list)
"""


def test_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(FACTORIES))
    done = interpreter.run("-m", "fastload.explain", "mine:dataset", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "lane: native" in done.stdout
    assert done.stderr == ""


def test_the_command_line_takes_loaders_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "theirs.py").write_text(textwrap.dedent(FACTORIES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert explain.main(["theirs:loader"]) == 0
    assert "why: collate_fn is list, Python code" in capsys.readouterr().out
    assert explain.main(["theirs:torchs"]) == 0
    assert "why: collate_fn is list, Python code" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        explain.main(["theirs"])
    assert "file.py:factory, but got 'theirs'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing:loader", "there is no module 'missing' here"),
        ("refused:nothing", "has no 'nothing'"),
        ("refused:fails", "refused:fails() failed: RuntimeError: no disk"),
        ("refused:none", "a Loader, a DataLoader or a dataset is needed, found NoneType"),
    ],
)
def test_what_cannot_be_explained_is_one_line(tmp_path, monkeypatch, capsys, name, words):
    code = "def none(): return None\ndef fails(): raise RuntimeError('no disk')\n"
    (tmp_path / "refused.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert explain.main([name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("python -m fastload.explain: ")
    assert words in err
    assert err.count("\n") == 1


class Rows(Dataset):
    def __init__(self):
        self.rows = [torch.full((3,), float(index)) for index in range(20)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_a_native_form_that_decides_nothing_is_made_only_to_be_explained():
    """It takes longer than an epoch of rows that Python collates."""
    loader = Loader(Rows(), batch_size=4, collate_fn=lambda rows: rows)
    rows = [row for batch in loader for row in batch]
    assert torch.stack(rows).equal(torch.stack(loader.dataset.rows))
    assert lanes.choose(loader).lowered is None
    assert loader._memo is None
    assert "\ndataset: 20 rows of float32, shape (3,)" in loader.explain()
    assert lanes.choose(Loader(loader.dataset)).lane == "native"
