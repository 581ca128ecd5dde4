"""Datasets of torchvision, made of files that are written here in the formats that it reads."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import PIL.Image
import pytest
import torchvision.datasets

COUNT = 10
"""Images in each dataset."""


def write_folder(root: Path, *, size: tuple[int, int] | None = None) -> Path:
    """Writes JPEG files of two classes.

    Args:
        root: Where to.
        size: Height and width of all images; None for different ones.
    """
    draw = np.random.Generator(np.random.PCG64(5))
    for number in range(COUNT):
        folder = root / ("cat" if number % 3 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        height, width = size or draw.integers(30, 70, 2)
        ramp = np.linspace(0, 255, height)[:, None, None] * np.linspace(0.2, 1, width)[:, None]
        noise = draw.integers(0, 20, (height, width, 3))
        image = PIL.Image.fromarray((ramp * draw.random(3) + noise).clip(0, 255).astype(np.uint8))
        image.save(folder / f"{number}.jpg", quality=90)
    return root


def folder(root: Path, **arguments: Any) -> Any:
    """Returns an `ImageFolder`."""
    return torchvision.datasets.ImageFolder(write_folder(root), **arguments)


def cifar10(root: Path, **arguments: Any) -> Any:
    """Returns a `CIFAR10`."""
    return _cifar(torchvision.datasets.CIFAR10, root, "labels", "label_names", arguments)


def cifar100(root: Path, **arguments: Any) -> Any:
    """Returns a `CIFAR100`."""
    names = "fine_labels", "fine_label_names"
    return _cifar(torchvision.datasets.CIFAR100, root, *names, arguments)


def mnist(kind: str) -> Callable[..., Any]:
    """Returns what makes a dataset of the MNIST family, by its name."""

    def make(root: Path, **arguments: Any) -> Any:
        raw = root / kind / "raw"
        raw.mkdir(parents=True)
        prefix, labels, values = "train", "labels-idx1-ubyte", _bytes(COUNT, seed=2) % 10
        if kind == "EMNIST":
            prefix, arguments["split"] = "emnist-letters-train", "letters"
        if kind == "QMNIST":
            prefix = "qmnist-train"
            labels = "labels-idx2-int"
            values = _bytes(COUNT, 8, seed=3).astype(">i4")
        _write_idx(raw / f"{prefix}-images-idx3-ubyte", _bytes(COUNT, 28, 28, seed=1))
        _write_idx(raw / f"{prefix}-{labels}", values)
        if kind in ("MNIST", "FashionMNIST", "KMNIST"):
            for name in ("images-idx3", "labels-idx1"):
                (raw / f"t10k-{name}-ubyte").touch()
        return getattr(torchvision.datasets, kind)(root, **arguments)

    return make


def svhn(root: Path, **arguments: Any) -> Any:
    """Returns an `SVHN`."""
    io = pytest.importorskip("scipy.io")
    labels = np.arange(1, COUNT + 1)[:, None]
    io.savemat(root / "train_32x32.mat", {"X": _bytes(32, 32, 3, COUNT), "y": labels})
    with mock.patch("torchvision.datasets.utils.check_md5", return_value=True):
        return torchvision.datasets.SVHN(root, **arguments)


def stl10(root: Path, **arguments: Any) -> Any:
    """Returns an `STL10`."""
    binary = root / torchvision.datasets.STL10.base_folder
    binary.mkdir()
    for split in ("train", "test", "unlabeled"):
        _bytes(COUNT, 3, 96, 96).tofile(binary / f"{split}_X.bin")
        (_bytes(COUNT, seed=4) % 10 + 1).tofile(binary / f"{split}_y.bin")
    (binary / "fold_indices.txt").touch()
    with mock.patch("torchvision.datasets.stl10.check_integrity", return_value=True):
        return torchvision.datasets.STL10(root, **arguments)


IN_MEMORY: dict[str, Callable[..., Any]] = {
    "CIFAR10": cifar10,
    "CIFAR100": cifar100,
    **{kind: mnist(kind) for kind in ("MNIST", "FashionMNIST", "KMNIST", "EMNIST", "QMNIST")},
    "SVHN": svhn,
    "STL10": stl10,
}


def _cifar(kind: Any, root: Path, labels: str, names: str, arguments: dict[str, Any]) -> Any:
    folder = root / kind.base_folder
    folder.mkdir()
    for number, (file, _) in enumerate(kind.train_list):
        data = _bytes(COUNT, 3072, seed=number)
        entry = {"data": data, labels: [int(each) % 10 for each in data[:, 0]]}
        (folder / file).write_bytes(pickle.dumps(entry))
    (folder / kind.meta["filename"]).write_bytes(pickle.dumps({names: list("abcdefghij")}))
    with mock.patch("torchvision.datasets.cifar.check_integrity", return_value=True):
        return kind(root, **arguments)


def _bytes(*shape: int, seed: int = 0) -> "np.ndarray":
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 256, shape, np.uint8)


def _write_idx(path: Path, array: "np.ndarray") -> None:
    kind = {"|u1": 8, ">i4": 12}[array.dtype.str]
    header = bytes([0, 0, kind, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    path.write_bytes(header + array.tobytes())
