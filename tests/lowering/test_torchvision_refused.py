"""What of torchvision is Python: refused, or stopped at a step, with the reason in words."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.datasets
from PIL import Image, JpegImagePlugin
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.transforms import v2

from fastload import Loader, OnError, lanes
from tests.shared.compare import assert_same

from .torchvision_files import cifar10, folder, mnist, write_folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return torchvision.datasets.ImageFolder(write_folder(tmp_path_factory.mktemp("images")))


class Overridden(torchvision.datasets.ImageFolder):
    def __getitem__(self, index):
        return super().__getitem__(index)[0]


def opened(path):
    raise NotImplementedError


def changed(dataset, **attributes):
    for name, value in attributes.items():
        setattr(dataset, name, value)
    return dataset


REFUSED = {
    "subclass": (lambda root: Overridden(write_folder(root)), "Overridden makes its samples"),
    "loader": (lambda root: folder(root, loader=opened), "its loader is .*opened, Python code"),
    "target": (
        lambda root: folder(root, transform=v1.PILToTensor(), target_transform=lambda y: y + 1),
        "target_transform is .*<lambda>, Python code",
    ),
    "no tensor": (lambda root: folder(root), "its samples are Pillow images"),
    "no tensor, in memory": (lambda root: cifar10(root), r"samples\[0\] are Pillow images"),
    "light": (lambda root: cifar10(root, transform=v1.Lambda(np.asarray)), "Lambda is Python code"),
    "no bytes": (
        lambda root: changed(cifar10(root), data=np.zeros((3, 4, 4, 3), np.float32)),
        "its data is float32",
    ),
    "a list of images": (
        lambda root: changed(cifar10(root), data=[np.zeros((32, 32, 3), np.uint8)]),
        "its attributes are not what CIFAR10 stores: AttributeError: 'list' object",
    ),
    "samples": (
        lambda root: changed(folder(root), samples=[["a.jpg", 0]]),
        "not all tuples of a path and an int",
    ),
    "QMNIST": (lambda root: mnist("QMNIST")(root, compat=False), "compat=True|whole rows"),
}


@pytest.mark.parametrize(("make", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exact_is_python_with_a_reason(make, why, tmp_path):
    loader = Loader(make(tmp_path), num_workers=1)
    loader.lane = "native"
    with pytest.raises(ValueError, match=f"lane='native' is not possible: .*({why})"):
        iter(loader)


STOPPED = {
    "v1 on v2": (
        [v2.ToImage(), v1.RandomHorizontalFlip()],
        "on an image of torchvision.transforms",
    ),
    "floats": ([v1.ToTensor(), v1.Resize(4)], "Resize: it scales a tensor of other numbers"),
    "white": (
        [v1.ToTensor(), v1.Normalize(0.5, 0.5), v1.Pad(1)],
        "Pad: it fills with a value of a tensor",
    ),
    "erased": (
        [v1.ToTensor(), v1.RandomErasing(), v1.RandomHorizontalFlip()],
        "RandomHorizontalFlip: it comes after RandomErasing",
    ),
    "jitter": ([v1.PILToTensor(), v1.ColorJitter(0.1)], "ColorJitter: it changes a tensor"),
    "raises": ([v1.ToTensor(), v1.Normalize(0.5, 0.0)], "Normalize: it raises ValueError"),
    "chosen": ([v1.RandomApply([v1.ToTensor()])], "ToTensor changes the type or the channels"),
    "unknown": ([v1.ToTensor(), v1.FiveCrop(2)], "FiveCrop is Python code"),
    "an array": (
        [v1.ToTensor(), v1.CenterCrop(np.array([9, 9]))],
        "CenterCrop could not be tried on a test image: ValueError: The truth value of an array",
    ),
    "fill": ([v1.Pad(2, fill=np.int64(5)), v1.ToTensor()], "its fill is np.int64(5)"),
    "no bits": ([v1.RandomPosterize(0), v1.ToTensor()], "its bits are 0"),
    "infinite": ([v1.ToTensor(), v2.ToDtype(torch.complex64)], "torch.complex64"),
}


@pytest.mark.parametrize(("steps", "why"), STOPPED.values(), ids=STOPPED)
def test_the_step_that_stops_a_chain_is_named(steps, why, images, monkeypatch):
    monkeypatch.setattr(images, "transform", v1.Compose(steps))
    choice = lanes.choose(Loader(images, num_workers=1))
    assert choice.lane == "process"
    assert why in choice.why
    assert "position" in choice.why


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (
            [v1.Resize(8), v1.ToTensor()],
            "samples[1] become tensors on torch's default device, meta",
        ),
        ([v1.PILToTensor()], "PILToTensor: it makes a tensor on torch's default device, meta"),
    ],
)
def test_what_torch_makes_on_a_default_device_is_python(steps, why, images, monkeypatch):
    monkeypatch.setattr(images, "transform", v1.Compose(steps))
    with torch.device("meta"):
        choice = lanes.choose(Loader(images))
        assert torch.utils.data.default_collate([0]).is_meta
    assert choice.lane == "consumer"
    assert why in choice.why
    assert "a forked worker may not be able to use" in choice.why
    assert lanes.choose(Loader(images)).lane == "native"


def test_hooks_and_replaced_methods_are_noticed(images, monkeypatch):
    crop, flip = v1.CenterCrop(16), v1.RandomHorizontalFlip()
    monkeypatch.setattr(images, "transform", v1.Compose([crop, flip, v1.ToTensor()]))
    loader = Loader(images, num_workers=1)
    assert lanes.choose(loader).lane == "native"
    hook = crop.register_forward_hook(lambda module, args, result: result)
    assert "forward hook" in lanes.choose(loader).why
    hook.remove()
    flip.forward = lambda image: image
    assert "a forward of its own" in lanes.choose(loader).why
    del flip.forward
    with monkeypatch.context() as patch:
        patch.setattr(v1.ToTensor, "__call__", lambda self, image: image)
        assert "ToTensor.__call__ was replaced" in lanes.choose(loader).why
    assert lanes.choose(loader).lane == "native"


@pytest.mark.parametrize(("damaged", "lane"), [(1, "native"), (5, "native"), (6, "process")])
def test_a_small_folder_with_damaged_files_stays_native(damaged, lane, tmp_path):
    """Files of no known format are damaged, unless most of the others are of that format too."""
    dataset = folder(tmp_path, transform=v1.Compose([v1.Resize((8, 8)), v1.ToTensor()]))
    assert len(dataset) == 10
    for path, _ in dataset.samples[:damaged]:
        Path(path).write_bytes(b"an error page in place of a picture")
    on_error = OnError("skip")
    loader = Loader(dataset, 10, num_workers=1, on_error=on_error)
    assert lanes.choose(loader).lane == lane
    [(pixels, _)] = loader
    assert len(pixels) == 10 - damaged
    assert [bad.index for bad in loader.bad] == list(range(damaged))


@pytest.mark.parametrize("foreign", [0, 2])
def test_a_folder_of_other_formats_is_for_python_workers(foreign, tmp_path):
    dataset = folder(tmp_path, transform=v1.Compose([v1.Resize((8, 8)), v1.ToTensor()]))
    import PIL.Image

    for path, _ in dataset.samples[:foreign]:
        PIL.Image.new("RGB", (9, 9), (1, 2, 3)).save(path, "GIF")
    loader = Loader(dataset, 4, num_workers=1)
    choice = lanes.choose(loader)
    if foreign:
        assert choice.lane == "process"
        assert "2 of 10 files looked at are GIF" in loader.explain()
        assert not choice.seam
    assert_same(list(loader), list(DataLoader(dataset, 4)))


def red(*_arguments, **_named):
    return Image.new("RGB", (9, 9), "red")


class Red(JpegImagePlugin.JpegImageFile):
    def load_end(self):
        self.im.paste((255, 0, 0), (0, 0, *self.size))


REPLACED = {
    "pil_loader": (torchvision.datasets.folder, "pil_loader", red),
    "its code": (torchvision.datasets.folder.pil_loader, "__code__", red.__code__),
    "open": (Image, "open", red),
    "functional": (v1.functional, "resize", red),
    "on Pillow": (v1._functional_pil, "resize", red),
    "method": (Image.Image, "resize", red),
    "opener": (Image, "OPEN", {**Image.OPEN, "JPEG": (Red, lambda head: head[:2] == b"\xff\xd8")}),
}


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_what_other_code_has_replaced_is_called(replaced, images, monkeypatch):
    steps = v1.Compose([v1.Resize((4, 4)), v1.ToTensor()])
    dataset = changed(copy.copy(images), transform=steps)
    assert lanes.choose(Loader(dataset, 4)).lane == "native"
    monkeypatch.setattr(*replaced)
    torchs = list(DataLoader(dataset, 4))
    loader = Loader(dataset, 4, num_workers=1)
    assert_same(list(loader), torchs)
    assert "was replaced by other code" in lanes.choose(loader).why


class Photos(torch.utils.data.Dataset):
    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(Image.open(self.files[index]).convert("RGB"))


def test_draws_of_a_later_part_are_those_of_torchs_workers(images):
    files = [path for path, _ in images.samples]
    steps = v1.Compose([v1.CenterCrop(8), v1.ToTensor()])
    drawing = v1.Compose([v1.RandomCrop(8), v1.ToTensor()])
    dataset = torch.utils.data.ConcatDataset([Photos(files, steps), Photos(files, drawing)])
    torch.manual_seed(1)
    expected = list(DataLoader(dataset, 4, num_workers=2))
    torch.manual_seed(1)
    assert_same(list(Loader(dataset, 4, num_workers=2)), expected)


def test_tables_of_augmenters_that_were_replaced_are_used(images):
    inverts = [(("Invert", 1.0, None), ("Invert", 0.0, None))]
    nothing = {"Identity": (lambda *_: None, False)}
    for augment in (
        changed(v1.AutoAugment(), policies=inverts),
        changed(v2.AutoAugment(), _policies=inverts),
        changed(
            v1.RandAugment(), _augmentation_space=lambda *_: {"Identity": (torch.zeros(()), False)}
        ),
        changed(v2.RandAugment(), _AUGMENTATION_SPACE=nothing),
    ):
        dataset = changed(
            copy.copy(images), transform=v1.Compose([augment, v1.CenterCrop(8), v1.ToTensor()])
        )
        torch.manual_seed(1)
        expected = list(DataLoader(dataset, 4, num_workers=1))
        torch.manual_seed(1)
        assert_same(list(Loader(dataset, 4, num_workers=1)), expected)


@pytest.mark.parametrize("kind", [v1.RandAugment, v1.TrivialAugmentWide, v1.AutoAugment])
def test_a_table_that_a_class_was_given_is_used(kind, images, monkeypatch):
    dataset = changed(copy.copy(images), transform=v1.Compose([kind(), v1.ToTensor()]))
    assert lanes.choose(Loader(dataset, num_workers=1)).lane == "native"
    monkeypatch.setattr(kind, "_augmentation_space", lambda *_: {})
    assert "_augmentation_space was replaced" in lanes.choose(Loader(dataset, num_workers=1)).why


@pytest.mark.parametrize("kind", [v2.RandAugment, v2.TrivialAugmentWide, v2.AutoAugment])
def test_operations_that_a_class_of_v2_was_given_are_used(kind, images, monkeypatch):
    dataset = changed(copy.copy(images), transform=v1.Compose([kind(), v1.ToTensor()]))
    assert lanes.choose(Loader(dataset, num_workers=1)).lane == "native"
    table = kind._AUGMENTATION_SPACE
    turned = dict.fromkeys(table, (None, False))
    moved = table | {"ShearX": table["Rotate"]}
    wider = table | {"Rotate": (lambda bins, *_: torch.linspace(0.0, 170.0, bins), True)}
    fewer = {name: each for name, each in table.items() if name != "ShearX"}
    for other in (turned, moved, wider, fewer, dict(reversed(table.items()))):
        monkeypatch.setattr(kind, "_AUGMENTATION_SPACE", other)
        assert "operations" in lanes.choose(Loader(dataset, num_workers=1)).why
        monkeypatch.undo()
    monkeypatch.setitem(table, "ShearX", (table["ShearX"][0], False))
    assert "operations" in lanes.choose(Loader(dataset, num_workers=1)).why


@pytest.mark.parametrize("kind", [v2.RandAugment, v2.TrivialAugmentWide])
def test_batches_with_operations_that_a_class_was_given_are_torchs(kind, images, monkeypatch):
    rotates = {"Rotate": (lambda bins, *_: torch.linspace(90.0, 180.0, bins), True)}
    monkeypatch.setattr(kind, "_AUGMENTATION_SPACE", rotates)
    chain = v1.Compose([kind(), v1.CenterCrop(8), v1.ToTensor()])
    dataset = changed(copy.copy(images), transform=chain)
    torch.manual_seed(1)
    expected = list(DataLoader(dataset, 4, num_workers=1))
    torch.manual_seed(1)
    assert_same(list(Loader(dataset, 4, num_workers=1)), expected)
