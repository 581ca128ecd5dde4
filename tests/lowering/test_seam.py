"""The seam: samples begin natively, and end in Python in torch's worker processes."""

import pickle

import numpy as np
import PIL.Image
import PIL.ImageCms
import PIL.ImageOps
import pytest
import torch
import torchvision.datasets
from torch.utils.data import ConcatDataset, DataLoader, StackDataset, Subset, get_worker_info
from torchvision import transforms as v1
from torchvision.transforms import v2

from fastload import Loader, columns, lanes, transforms
from fastload.lowering.seam import Seam
from fastload.processes.iterator import ProcessIter
from tests.shared.compare import assert_same

from .torchvision_files import cifar10, folder, write_folder


def negative(image):
    return 255 - torch.from_numpy(np.asarray(image).copy())


def doubled(tensor):
    return {"twice": 2 * tensor, "kind": str(type(tensor))}


def as_array(tensor):
    return tensor.numpy()


def as_list(samples):
    return samples


RESIZED = [v1.Resize((20, 24)), v1.CenterCrop(18)]
TAILS = {
    "on pillow": [*RESIZED, negative],
    "on a tensor": [*RESIZED, v1.ToTensor(), doubled],
    "on an image of v2": [*RESIZED, v2.ToImage(), doubled],
    "in the middle": [*RESIZED, np.array, torch.from_numpy, doubled],
    "nested": [v1.Compose(RESIZED), v1.Compose([v1.ToTensor(), v1.Lambda(doubled)])],
    "at once": [v1.Lambda(lambda image: image.size)],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("images"))


def images(root, *steps):
    return torchvision.datasets.ImageFolder(root, v1.Compose(list(steps)))


def assert_seamed(dataset, **arguments):
    """Asserts that a loader stops at a seam, and gives torch's batches; returns what it explains."""
    arguments = {"batch_size": 4, **arguments}
    loader = Loader(dataset, num_workers=1, **arguments)
    choice = lanes.choose(loader)
    assert (choice.lane, choice.seam) == ("process", True), choice
    iterator = iter(loader)
    assert type(iterator) is ProcessIter
    assert type(iterator._dataset) is Seam
    assert_same(list(iterator), list(DataLoader(dataset, **arguments)))
    return loader.explain()


@pytest.mark.parametrize("tail", ["on a tensor", "on an image of v2", "nested"])
def test_a_chain_that_ends_in_python(tail, root):
    words = assert_seamed(images(root, *TAILS[tail]))
    assert "seam: dataset[0] is native up to" in words
    assert "in Python, in worker processes" in words


@pytest.mark.parametrize("tail", TAILS.keys() - {"at once"})
def test_a_chain_of_images_in_memory(tail, tmp_path):
    assert_seamed(cifar10(tmp_path, transform=v1.Compose(TAILS[tail])))


def upright(image):
    return np.array(PIL.ImageOps.exif_transpose(image))


PILLOWS = {name: TAILS[name] for name in ("on pillow", "in the middle", "at once")}
PILLOWS["turned"] = [upright]
PILLOWS["resized, turned"] = [v1.Resize((20, 24)), upright]


@pytest.mark.parametrize("steps", PILLOWS.values(), ids=PILLOWS)
def test_pillow_images_of_files_are_pillows_own(steps, turned):
    assert_pillows(images(turned, *steps))


def test_pillow_images_keep_what_was_read_in_their_files(turned):
    assert_pillows(images(turned, *RESIZED), collate_fn=infos)
    dataset = torchvision.datasets.ImageFolder(turned)
    assert_pillows(dataset, collate_fn=infos)
    assert "exif" in next(iter(Loader(dataset, 4, collate_fn=infos)))[0][0]


def infos(samples):
    return [(image.info, image.size, image.tobytes()) for image, _ in samples]


def assert_pillows(dataset, **arguments):
    """Asserts that Python makes the samples, and that they are torch's."""
    for workers in (0, 1):
        loader = Loader(dataset, 4, num_workers=workers, **arguments)
        assert not lanes.choose(loader).seam
        assert_same(list(loader), list(DataLoader(dataset, 4, **arguments)))


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """Photographs that are to be turned, with a profile of their colours."""
    root = tmp_path_factory.mktemp("turned")
    (root / "cat").mkdir()
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    profile = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
    for place in range(6):
        pixels = np.random.default_rng(place).integers(0, 256, (20, 30, 3), np.uint8)
        image = PIL.Image.fromarray(pixels)
        image.save(root / "cat" / f"{place}.jpg", exif=exif, icc_profile=profile, dpi=(300, 300))
    return root


def test_a_collation_of_ones_own(root, tmp_path):
    words = assert_seamed(images(root, *RESIZED, v1.ToTensor()), collate_fn=as_list)
    assert "seam: samples are native" in words
    assert "as_list makes their batches" in words
    assert_seamed(cifar10(tmp_path, transform=v1.Compose(RESIZED)), collate_fn=as_sizes)


def as_sizes(samples):
    return [(image.size, image.mode, image.tobytes(), label) for image, label in samples]


def test_samples_one_by_one(root):
    assert_seamed(images(root, *RESIZED, v1.ToTensor(), doubled), batch_size=None)
    dataset = images(root, *RESIZED, v2.ToImage())
    kinds = [type(image) for image, _ in Loader(dataset, None, num_workers=1)]
    assert kinds == [type(image) for image, _ in DataLoader(dataset, None)]


def test_datasets_that_hold_one(root):
    dataset = images(root, *RESIZED, v1.ToTensor(), doubled)
    assert_seamed(Subset(dataset, [5, 1, -1]))
    assert_seamed(ConcatDataset([dataset, Subset(dataset, [0, 1])]))
    assert_seamed(StackDataset(a=dataset, b=torch.arange(len(dataset))))


def test_parts_that_end_differently_are_python(root):
    parts = [images(root, *RESIZED, v1.ToTensor(), last) for last in (negative, as_array)]
    dataset = ConcatDataset(parts)
    loader = Loader(dataset, num_workers=1)
    assert "end in different Python calls" in lanes.choose(loader).why
    iterator = iter(loader)
    assert type(iterator) is ProcessIter
    assert type(iterator._dataset) is ConcatDataset


def test_random_samples_repeat_under_a_seed(root):
    dataset = images(root, v1.RandomResizedCrop(16), v1.ToTensor(), negative)
    loader = Loader(dataset, 4, num_workers=2)

    def run(seed):
        torch.manual_seed(seed)
        return torch.cat([batch for batch, _ in loader])

    first = run(3)
    assert torch.equal(first, run(3))
    assert not torch.equal(first, run(4))


class Watched(v1.Lambda):
    """What only Python could say: where it runs, and on what."""

    def __init__(self):
        super().__init__(self.look)

    def look(self, image):
        info = get_worker_info()
        return len(info.dataset), info.dataset.classes, info.dataset.tag


def tag(worker):
    get_worker_info().dataset.tag = f"worker {worker}"


def test_worker_init_fn_reaches_the_dataset(root):
    dataset = images(root, *RESIZED, v1.ToTensor(), Watched())
    dataset.tag = "none"
    [(seen, _)] = Loader(dataset, 10, num_workers=1, worker_init_fn=tag, collate_fn=first)
    assert seen == (10, ["cat", "dog"], "worker 0")


def first(samples):
    return samples[0]


def small(worker):
    get_worker_info().dataset.transform.transforms[0].size = (5, 6)


def test_what_worker_init_fn_changes_takes_effect(root):
    dataset = images(root, v1.Resize((8, 8)), v1.ToTensor(), as_array)
    arguments = {"batch_size": 4, "num_workers": 1, "worker_init_fn": small}
    ours = list(Loader(dataset, **arguments))
    assert ours[0][0].shape == (4, 3, 5, 6)
    assert_same(ours, list(DataLoader(dataset, **arguments)))


def test_changes_between_epochs_take_effect(root):
    resize = v1.Resize((8, 8))
    dataset = images(root, resize, v1.ToTensor(), as_array)
    loader = Loader(dataset, 4, num_workers=1)
    assert next(iter(loader))[0].shape == (4, 3, 8, 8)
    resize.size = (9, 7)
    assert next(iter(loader))[0].shape == (4, 3, 9, 7)
    dataset.transform.transforms.append(np.transpose)
    assert next(iter(loader))[0].shape == (4, 7, 9, 3)


@pytest.mark.timeout(90)  # spawned workers import torch and torchvision
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_every_way_to_start_a_worker(method, root):
    dataset = torchvision.datasets.ImageFolder(root, v1.Compose([*RESIZED, v1.ToTensor()]))
    arguments = {"batch_size": 4, "collate_fn": torch.utils.data.default_convert}
    loader = Loader(dataset, num_workers=1, multiprocessing_context=method, **arguments)
    assert lanes.choose(loader).seam
    assert_same(list(loader), list(DataLoader(dataset, **arguments)))


def test_persistent_workers(root):
    dataset = images(root, *RESIZED, v1.ToTensor(), negative)
    loader = Loader(dataset, 4, num_workers=1, persistent_workers=True)
    torchs = list(DataLoader(dataset, 4))
    for _ in range(2):
        assert_same(list(loader), torchs)
    assert iter(loader) is iter(loader)
    assert loader.stats()["batches"] == 0


def test_a_seam_is_its_dataset_otherwise(root):
    dataset = images(root, *RESIZED, v1.ToTensor(), negative)
    seam = Seam(dataset)
    assert len(seam) == len(dataset)
    assert seam.classes == dataset.classes
    assert seam.__getitems__ is None
    with pytest.raises(AttributeError):
        _ = seam.missing
    again = pickle.loads(pickle.dumps(seam))
    assert_same(again[-1], dataset[-1])
    for index, error in ((10, IndexError), ("a", TypeError)):
        with pytest.raises(error):
            seam[index]
        with pytest.raises(error):
            dataset[index]


def test_a_damaged_file_is_an_error_that_names_it(tmp_path):
    dataset = folder(tmp_path, transform=v1.Compose([*RESIZED, v1.ToTensor(), negative]))
    path = tmp_path / "cat" / "1.jpg"
    path.write_bytes(b"\xff\xd8\xff" + bytes(20))
    loader = Loader(dataset, 10, num_workers=1)
    assert lanes.choose(loader).seam
    with pytest.raises(OSError, match=r"1\.jpg"):
        list(loader)


def test_what_is_light_is_left_alone(tmp_path):
    numbers = torch.utils.data.TensorDataset(torch.arange(6))
    assert not lanes.choose(Loader(numbers, collate_fn=as_list, num_workers=1)).seam


class Photographs:
    """Declares its columns."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with PIL.Image.open(self.paths[index]) as image:
            return v1.Compose([v1.Resize((8, 8)), v1.ToTensor()])(image.convert("RGB"))

    def __fastload__(self):
        steps = [transforms.Resize((8, 8)), transforms.ToTensor()]
        return columns.Image(self.paths, steps)


def test_declared_columns_with_a_collation_of_ones_own(root):
    assert_seamed(Photographs(sorted(root.glob("*/*.jpg"))), collate_fn=as_list)


def set_transform(_worker):
    dataset = get_worker_info().dataset
    assert isinstance(dataset, torchvision.datasets.ImageFolder)
    dataset.transform = v1.Compose([*RESIZED, v1.ToTensor(), doubled])


def test_worker_init_fn_may_set_attributes(root):
    dataset = images(root, *RESIZED, v1.ToTensor(), negative)
    arguments = {"batch_size": 4, "num_workers": 1, "worker_init_fn": set_transform}
    assert_same(list(Loader(dataset, **arguments)), list(DataLoader(dataset, **arguments)))
