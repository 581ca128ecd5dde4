"""torchvision's datasets and transforms: recognised, native, and the batches of torch's DataLoader."""

import copy

import pytest
import torch
import torchvision.datasets
from torch.utils.data import ConcatDataset, DataLoader, Subset
from torchvision import transforms as v1
from torchvision.models import EfficientNet_B0_Weights, ResNet50_Weights
from torchvision.transforms import v2

from fastload import Loader, lanes
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .torchvision_files import COUNT, IN_MEMORY, cifar10, folder, mnist, write_folder

pytestmark = MANY_WORKERS

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def assert_native(dataset, **arguments):
    """Asserts that a loader is native, and gives the batches of torch's; returns them."""
    arguments = {"batch_size": 4, **arguments}
    loader = Loader(dataset, **arguments, **SIZES)
    choice = lanes.choose(loader)
    assert choice.lane == "native", choice.why
    ours = list(loader)
    assert_same(ours, list(DataLoader(dataset, **arguments)))
    return ours


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return torchvision.datasets.ImageFolder(write_folder(tmp_path_factory.mktemp("images")))


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    root = write_folder(tmp_path_factory.mktemp("squares"), size=(48, 48))
    return torchvision.datasets.ImageFolder(root)


@pytest.mark.parametrize("make", IN_MEMORY.values(), ids=IN_MEMORY)
@pytest.mark.parametrize("family", [v1, v2])
def test_images_in_memory(make, family, tmp_path):
    if family is v1:
        transform = v1.Compose([v1.ToTensor(), v1.Normalize(0.4, 0.2)])
    else:
        transform = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    dataset = make(tmp_path, transform=transform)
    assert_native(dataset)
    assert_native(Subset(dataset, range(0, len(dataset), 3)))
    if family is v1:
        assert_native(dataset, batch_size=None)


def deterministic(family):
    """Returns transforms whose result is one for each image, of one shape for all."""
    modes = family.InterpolationMode
    to_floats = (
        [family.ToTensor()] if family is v1 else [v2.ToImage(), v2.ToDtype(torch.float32, True)]
    )
    resize = [family.Resize(40), family.CenterCrop(32)]
    return {
        "evaluation": [*resize, *to_floats, family.Normalize(MEAN, STD)],
        "pair": [family.Resize((20, 31), modes.BICUBIC), family.PILToTensor()],
        "list of one": [family.Resize([40]), family.CenterCrop([32]), family.PILToTensor()],
        "longest": [family.Resize(40, max_size=50), family.CenterCrop(64), family.PILToTensor()],
        "nearest": [family.Resize((25, 25), modes.NEAREST), family.PILToTensor()],
        "exactly nearest": [family.Resize((25, 25), modes.NEAREST_EXACT), family.PILToTensor()],
        "box": [family.Resize((25, 25), modes.BOX), family.PILToTensor()],
        "hamming": [family.Resize((25, 25), modes.HAMMING), family.PILToTensor()],
        "lanczos": [family.Resize((25, 80), modes.LANCZOS), family.PILToTensor()],
        "gray": [*resize, family.Grayscale(), *to_floats, family.Normalize([0.4], [0.2])],
        "gray in three": [*resize, family.Grayscale(3), *to_floats],
        "padded": [*resize, family.Pad((1, 2), fill=(7, 8, 9)), *to_floats],
        "half": [*resize, family.PILToTensor(), family.ConvertImageDtype(torch.float16)],
        "ints": [*resize, family.PILToTensor(), family.ConvertImageDtype(torch.int32)],
        "crop at the end": [family.Resize((40, 44)), *to_floats, family.CenterCrop(32)],
        "zeros at the end": [family.Resize((20, 20)), *to_floats, family.CenterCrop(32)],
        "nested": [family.Compose(resize), family.Compose([family.Compose(to_floats)])],
        "mirrored": [*resize, *to_floats, family.RandomHorizontalFlip(1.0)],
    }


CHAINS = {
    f"{f.__name__.rpartition('.')[2]} {n}": (f, n) for f in (v1, v2) for n in deterministic(f)
}


@pytest.mark.parametrize(("family", "name"), CHAINS.values(), ids=CHAINS)
def test_deterministic_chains_have_torchs_batches(family, name, images, monkeypatch):
    monkeypatch.setattr(images, "transform", family.Compose(deterministic(family)[name]))
    ours = assert_native(images)
    assert [len(labels) for _, labels in ours] == [4, 4, 2]


TENSORS = {
    "v2": [v2.ToImage(), v2.Resize(40), v2.CenterCrop(32), v2.ToDtype(torch.float32, scale=True)],
    "v2 cubic": [v2.PILToTensor(), v2.Resize((20, 31), v2.InterpolationMode.BICUBIC)],
    "v1": [v1.PILToTensor(), v1.Resize((31, 20)), v1.ConvertImageDtype(torch.float32)],
    "aliased": [v1.PILToTensor(), v1.Resize((31, 20), antialias=False)],
    "nearest": [v1.PILToTensor(), v1.Resize((31, 20), v1.InterpolationMode.NEAREST)],
    "exact": [v2.PILToTensor(), v2.Resize((31, 90), v1.InterpolationMode.NEAREST_EXACT)],
    "gray": [v2.ToImage(), v2.CenterCrop(24), v2.Grayscale(3)],
    "crop": [v2.ToImage(), v2.RandomResizedCrop((9, 9), (1.0, 1.0), (1.0, 1.0))],
}


@pytest.mark.parametrize("steps", TENSORS.values(), ids=TENSORS)
def test_what_is_done_to_tensors_of_bytes_has_torchs_batches(steps, squares, monkeypatch):
    monkeypatch.setattr(squares, "transform", v2.Compose(steps))
    arguments = {"batch_size": 4}
    ours = list(Loader(squares, num_workers=1, **arguments))  # native, or up to the seam
    assert_same(ours, list(DataLoader(squares, **arguments)))


def certain(family):
    """Returns transforms that draw from distributions of one value."""
    modes = family.InterpolationMode
    nearest, bilinear, bicubic = modes.NEAREST, modes.BILINEAR, modes.BICUBIC
    whole = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)}
    return {
        "whole crop": [family.RandomResizedCrop(24, **whole)],
        "cubic crop": [family.RandomResizedCrop((24, 20), **whole, interpolation=bicubic)],
        "flips": [family.RandomVerticalFlip(1), family.RandomHorizontalFlip(1)],
        "no flips": [family.RandomVerticalFlip(0), family.RandomHorizontalFlip(0)],
        "crop of all": [family.RandomCrop(48)],
        "padded crop": [family.RandomCrop((52, 50), (1, 2), fill=(1, 2, 3))],
        "sides": [family.RandomCrop((52, 50), [2, 3, 0, 1], fill=9)],
        "brightness": [family.ColorJitter((0.7, 0.7))],
        "contrast": [family.ColorJitter(contrast=(1.3, 1.3))],
        "saturation": [family.ColorJitter(saturation=(0.2, 0.2))],
        "hue": [family.ColorJitter(hue=(0.1, 0.1))],
        "grey": [family.RandomGrayscale(1.0)],
        "blur": [family.GaussianBlur((3, 5), (0.8, 0.8))],
        "rotation": [family.RandomRotation((30, 30), bilinear, fill=(5, 6, 7))],
        "quarter": [family.RandomRotation((90, 90), nearest, expand=True)],
        "centred": [family.RandomRotation((10, 10), bicubic, center=(3, 4))],
        "affine": [
            family.RandomAffine((20, 20), None, (1.2, 1.2), (5, 5, -4, -4), bilinear, fill=8)
        ],
        "affine, a quarter": [family.RandomAffine((-90, -90), None, (1.25, 1.25), None, bilinear)],
        "shear": [family.RandomAffine(0, shear=(7, 7), center=(1, 2))],
        "invert": [family.RandomInvert(1.0)],
        "posterize": [family.RandomPosterize(3, 1.0)],
        "solarize": [family.RandomSolarize(100, 1.0)],
        "sharpness": [family.RandomAdjustSharpness(1.7, 1.0)],
        "autocontrast": [family.RandomAutocontrast(1.0)],
        "equalize": [family.RandomEqualize(1.0)],
        "apply": [
            family.RandomApply([family.RandomInvert(1.0), family.RandomVerticalFlip(1)], 1.0)
        ],
        "never": [family.RandomApply([family.RandomInvert(1.0)], 0.0)],
        "choice": [family.RandomChoice([family.RandomInvert(1.0), family.Resize(7)], p=[1.0, 0.0])],
        "order": [
            family.RandomOrder([family.RandomVerticalFlip(1), family.RandomHorizontalFlip(1)])
        ],
    }


DRAWING = {f"{f.__name__.rpartition('.')[2]} {n}": (f, n) for f in (v1, v2) for n in certain(f)}


@pytest.mark.parametrize(("family", "name"), DRAWING.values(), ids=DRAWING)
def test_certain_draws_have_torchs_batches(family, name, squares, monkeypatch):
    steps = [*certain(family)[name], family.PILToTensor()]
    monkeypatch.setattr(squares, "transform", family.Compose(steps))
    assert_native(squares)


@pytest.mark.parametrize("family", [v1, v2])
@pytest.mark.parametrize(
    "steps",
    [
        lambda f: [f.RandomResizedCrop(32), f.RandomHorizontalFlip(), f.PILToTensor()],
        lambda f: [f.RandomCrop(40), f.ColorJitter(0.4, 0.4, 0.2, 0.1), f.PILToTensor()],
        lambda f: [f.Resize((32, 32)), f.RandAugment(), f.PILToTensor()],
        lambda f: [f.Resize((32, 32)), f.TrivialAugmentWide(fill=[1, 2, 3]), f.PILToTensor()],
        lambda f: [f.Resize((32, 32)), f.AutoAugment(), f.PILToTensor()],
        lambda f: (
            [f.Resize((32, 32)), f.ToTensor(), f.RandomErasing(1.0)]
            if f is v1
            else [
                v2.Resize((32, 32)),
                v2.ToImage(),
                v2.ToDtype(torch.float32, True),
                v2.RandomErasing(1.0, value="random"),
                v2.ToPureTensor(),
            ]
        ),
    ],
    ids=["crop", "jitter", "rand", "trivial", "auto", "erase"],
)
def test_random_chains_are_native_and_repeat(family, steps, squares, monkeypatch):
    monkeypatch.setattr(squares, "transform", family.Compose(steps(family)))
    loader = Loader(squares, 4, **SIZES)
    choice = lanes.choose(loader)
    assert choice.lane == "native", choice.why
    assert "drawn by Philox" in loader.explain()

    def run(seed):
        torch.manual_seed(seed)
        return torch.cat([batch for batch, _ in loader])

    torchs = next(iter(DataLoader(squares, COUNT)))[0]
    first = run(1)
    assert (first.shape, first.dtype) == (torchs.shape, torchs.dtype)
    assert torch.equal(first, run(1))
    assert not torch.equal(first, run(2))


@pytest.mark.parametrize("weights", [ResNet50_Weights.DEFAULT, EfficientNet_B0_Weights.DEFAULT])
def test_presets_of_weights(weights, images, monkeypatch):
    monkeypatch.setattr(images, "transform", weights.transforms())
    assert_native(images)


def test_a_sequence_of_modules_is_a_chain(images, monkeypatch):
    steps = torch.nn.Sequential(v1.Resize((20, 20)), v1.CenterCrop(16), v2.PILToTensor())
    monkeypatch.setattr(images, "transform", steps)
    assert_native(images)


def test_functions_of_torchvision_are_transforms(images, monkeypatch):
    steps = v1.Compose([v1.Resize((20, 20)), v1.functional.to_tensor])
    monkeypatch.setattr(images, "transform", steps)
    assert_native(images)


@pytest.mark.parametrize("padding", [v1.Pad(4), v1.RandomCrop((32, 32), padding=0)])
def test_padding_of_images_in_memory(padding, tmp_path):
    assert_native(cifar10(tmp_path, transform=v1.Compose([padding, v1.ToTensor()])))


def test_subsets_and_sums_of_folders(tmp_path):
    transform = v1.Compose([v1.Resize((20, 24)), v1.ToTensor()])
    one = folder(tmp_path / "one", transform=transform)
    other = folder(tmp_path / "other", transform=transform)
    assert_native(ConcatDataset([one, Subset(other, [3, 1, -1]), one]))


@pytest.mark.parametrize("table", [{0: 7, 1: 3}, [7, 3]], ids=["dict", "list"])
def test_targets_are_looked_up(table, tmp_path):
    table = copy.copy(table)
    dataset = cifar10(tmp_path)
    dataset.targets = [each % 2 for each in dataset.targets]
    dataset.transform = v1.ToTensor()
    dataset.target_transform = table.__getitem__
    first = assert_native(dataset)
    table[0] = 5
    assert repr(assert_native(dataset)[0][1]) != repr(first[0][1])
    dataset.targets[:] = [1] * len(dataset)
    assert_native(dataset)


def test_numbers_of_targets_stay_numbers_in_samples(tmp_path):
    dataset = mnist("MNIST")(tmp_path, transform=v1.ToTensor())
    images, labels = zip(*Loader(dataset, None, **SIZES), strict=True)
    assert {type(label) for label in labels} == {int}
    assert {image.shape for image in images} == {(1, 28, 28)}


@pytest.mark.parametrize("kind", ["MNIST", "KMNIST"])
@pytest.mark.parametrize("change", [lambda y: y > 4, lambda y: y.double(), lambda y: y + 1])
def test_torchvision_makes_ints_of_targets_in_a_list(kind, change, tmp_path):
    dataset = mnist(kind)(tmp_path, transform=v1.ToTensor())
    dataset.targets = change(dataset.targets).tolist()
    assert_same(list(Loader(dataset, 4, **SIZES)), list(DataLoader(dataset, 4)))


def test_what_changes_between_epochs_takes_effect(tmp_path):
    resize = v1.Resize((20, 20))
    dataset = folder(tmp_path, transform=v1.Compose([resize, v1.ToTensor()]))
    loader = Loader(dataset, COUNT, **SIZES)

    def check():
        assert lanes.choose(loader).lane == "native"
        [batch] = loader
        assert_same([batch], list(DataLoader(dataset, COUNT)))
        return batch

    assert check()[0].shape[2:] == (20, 20)
    resize.size = (8, 9)
    assert check()[0].shape[2:] == (8, 9)
    dataset.transform.transforms.append(v1.Normalize(MEAN, STD))
    assert check()[0].min() < 0
    dataset.samples.reverse()
    assert check()[1].tolist() == [label for _, label in dataset.samples]
    dataset.samples[0] = (dataset.samples[0][0], 77)
    assert check()[1][0] == 77
    del dataset.samples[4:]
    assert len(check()[1]) == 4
    dataset.transform = v1.PILToTensor()
    dataset.samples = dataset.samples[:1]
    assert check()[0].dtype == torch.uint8


def test_lists_are_made_into_columns_once(tmp_path):
    dataset = folder(tmp_path, transform=v1.Compose([v1.Resize((8, 8)), v1.ToTensor()]))
    loader = Loader(dataset, num_workers=1)

    def kept():
        lanes.choose(loader)
        return {place: each.made for place, each in loader._memo._kept.items()}

    first = kept()
    assert len(first) == 3
    again = kept()
    assert first.keys() == again.keys()
    assert all(first[place] is again[place] for place in first)
    dataset.transform.transforms[0].size = (9, 9)
    changed = kept()
    assert [place[0] for place in first if changed[place] is not first[place]] == ["images"]
