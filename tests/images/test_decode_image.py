"""Folders whose loader is torchvision's `decode_image`; torch's DataLoader over them is the oracle."""

import functools
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.io import ImageReadMode, decode_image, read_image
from torchvision.transforms import v2

import fastload
from fastload.lanes import choose
from fastload.lowering import lower
from tests.shared.compare import assert_same, assert_same_outcomes, outcomes
from tests.shared.sizes import SIZES

from .decoded import MARKS, asked, encode, folder, native, stray

pytestmark = MARKS

MEAN, STD = [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]


def test_images_of_different_shapes_are_torchs_error(tmp_path: Path):
    data = folder(tmp_path, encode("JPEG"), encode("JPEG", "L"))
    got, want = outcomes(native(data, 2)), outcomes(DataLoader(data, 2))
    assert isinstance(want[0], RuntimeError)
    assert_same_outcomes(got, want)


TRANSFORMS: dict[str, Any] = {
    "v2": v2.Compose(
        [
            v2.Resize(24, antialias=True),
            v2.CenterCrop(20),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    ),
    "v2, bicubic": v2.Compose(
        [v2.Resize((25, 33), v2.InterpolationMode.BICUBIC), v2.ToDtype(torch.float16, scale=True)]
    ),
    "v2, image": v2.Compose([v2.ToImage(), v2.Pad(3, fill=7), v2.CenterCrop((31, 50))]),
    "v2, grey": v2.Compose([v2.Grayscale(3), v2.CenterCrop(20)]),
    "v1": v1.Compose(
        [v1.CenterCrop(20), v1.ConvertImageDtype(torch.float32), v1.Normalize(MEAN, STD)]
    ),
    "v1, one mean": v1.Compose([v1.ConvertImageDtype(torch.float32), v1.Normalize([0.5], [0.2])]),
}


@pytest.mark.parametrize("mode", [None, "RGB"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_tensors(tmp_path: Path, name: str, mode: str | None):
    files = [encode("JPEG", seed=1), encode("PNG", seed=2), encode("WEBP", seed=3)]
    data = folder(tmp_path, *files, mode=mode, transform=TRANSFORMS[name])
    loader = native(data, 2)
    assert_same(list(loader), list(DataLoader(data, 2)))
    assert asked(loader) == 0


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_grey_and_coloured_tensors(tmp_path: Path, name: str):
    files = [encode(kind, mode) for kind in ("JPEG", "PNG") for mode in ("L", "RGB")]
    data = folder(tmp_path, *files, transform=TRANSFORMS[name])
    loader = native(data)
    assert_same_outcomes(outcomes(loader), outcomes(DataLoader(data)))
    assert_same_outcomes(outcomes(native(data, 2)), outcomes(DataLoader(data, 2)))
    assert asked(loader) == 0


@pytest.mark.parametrize("name", ["v2", "v2, grey"])
def test_grey_files_that_torchvision_decodes_become_coloured_too(tmp_path: Path, name: str):
    data = stray(tmp_path, encode("PNG", "P"), transform=TRANSFORMS[name])
    loader = native(data, 4)
    assert_same(list(loader), list(DataLoader(data, 4)))
    assert asked(loader) == 1


@pytest.mark.parametrize("kind", ["LA", "RGBA"])
def test_other_channels_are_torchs_error(tmp_path: Path, kind: str):
    data = stray(tmp_path, encode("PNG", kind), transform=TRANSFORMS["v1"])
    got, want = outcomes(native(data)), outcomes(DataLoader(data))
    assert isinstance(want[1], RuntimeError)
    assert_same_outcomes(got, want)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("kind", ["LA", "RGBA", "I;16"])
def test_what_is_not_transformed_natively_is_by_torchvision(
    tmp_path: Path, kind: str, on_error: str
):
    data = stray(tmp_path, encode("PNG", kind), transform=TRANSFORMS["v2, image"])
    loader = native(data, on_error=on_error)
    assert_same(list(loader), list(DataLoader(data)))
    if on_error == "skip":
        assert loader.stats()["bad_samples"]["total"] == 0


def test_single_samples_that_are_not_transformed_natively(tmp_path: Path):
    chain = v2.Compose([v2.Pad(3, fill=7), v2.CenterCrop((31, 50))])
    data = stray(tmp_path, encode("PNG", "RGBA"), transform=chain)
    got, want = native(data, None), DataLoader(data, None)
    # torchvision's crop is a view
    assert_same([(x.contiguous(), y) for x, y in got], [(x.contiguous(), y) for x, y in want])


@pytest.mark.parametrize("repeats", [False, True])
def test_what_is_by_torchvision_draws_by_the_key_of_its_sample(tmp_path: Path, *, repeats: bool):
    chain = v2.Compose([v2.RandomCrop((9, 11)), v2.RandomHorizontalFlip()])
    data = stray(tmp_path, encode("PNG", "RGBA"), transform=chain)
    options: dict[str, Any] = {"sampler": [2, 0, 1, 1, 1]} if repeats else {}
    loader = native(data, **options)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    drawn = torch.get_rng_state()
    rest = list(batches)
    assert torch.equal(torch.get_rng_state(), drawn)
    torch.rand(3)  # as a training may between two runs
    resumed = native(data, **options)
    resumed.load_state_dict(state)
    assert_same(list(resumed), rest)
    if repeats:
        assert len({tuple(pixels.flatten().tolist()) for pixels, _ in rest[1:]}) > 1


def test_what_is_not_the_same_for_grey_ends_the_native_part(tmp_path: Path):
    steps = [v1.CenterCrop(20), v1.Grayscale(3), v1.ConvertImageDtype(torch.float32)]
    data = folder(tmp_path, encode("JPEG"), encode("JPEG", "L"), transform=v1.Compose(steps))
    loader = fastload.Loader(data, num_workers=1)
    words = loader.explain()
    assert "Grayscale treats grey images differently from RGB images, at position 1" in words
    assert 'decode to RGB: functools.partial(decode_image, mode="RGB")' in words
    assert "native up to CenterCrop" in words
    assert_same(list(loader), list(DataLoader(data)))


def test_a_seam_begins_with_what_is_asked(tmp_path: Path):
    data = stray(tmp_path, encode("GIF"), transform=v2.Compose([v2.CenterCrop(20), _halved]))
    loader = fastload.Loader(data, 4, num_workers=1)
    assert "native up to CenterCrop" in loader.explain()
    assert_same(list(loader), list(DataLoader(data, 4)))


def _halved(image: torch.Tensor) -> torch.Tensor:
    return image / 2


ORIENTED = [PIL.Image.Exif() for _ in range(2)]
ORIENTED[0][0x112], ORIENTED[1][0x112] = 1, 6


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_orientation(tmp_path: Path, kind: str, applied: bool):
    files = [encode("JPEG"), *(encode(kind, exif=exif.tobytes()) for exif in ORIENTED)]
    data = folder(tmp_path, *files)
    data.loader = functools.partial(decode_image, apply_exif_orientation=applied)
    loader = native(data)
    assert_same(list(loader), list(DataLoader(data)))
    assert asked(loader) == applied


@pytest.mark.parametrize(
    "loader",
    [
        read_image,
        functools.partial(read_image, mode="rgb"),
        functools.partial(decode_image, mode=ImageReadMode.GRAY),
        functools.partial(decode_image, mode="unchanged", apply_exif_orientation=False),
    ],
)
def test_loaders(tmp_path: Path, loader: Any):
    data = folder(tmp_path, encode("JPEG"), encode("JPEG", seed=1))
    data.loader = loader
    assert_same(list(native(data, 2)), list(DataLoader(data, 2)))
    data.samples.reverse()
    assert_same(list(native(data, 2)), list(DataLoader(data, 2)))


@pytest.mark.parametrize(
    ("loader", "why"),
    [
        (functools.partial(decode_image, mode="RGBA"), "decode_image with {'mode': 'RGBA'}"),
        (functools.partial(decode_image, mode="odd"), "decode_image with {'mode': 'odd'}"),
        (functools.partial(decode_image, input=3), "decode_image with {'input': 3}"),
        (functools.partial(read_image, "path"), "partial, Python code"),
        (torchvision.io.decode_jpeg, "decode_jpeg, Python code"),
    ],
)
def test_other_loaders_are_python(tmp_path: Path, loader: Any, why: str):
    data = folder(tmp_path, encode("JPEG"))
    data.loader = loader
    assert why in choose(fastload.Loader(data, **SIZES)).why


def test_a_changed_mode_takes_effect(tmp_path: Path):
    data = folder(tmp_path, encode("JPEG"))
    loader = native(data)
    list(loader)
    data.loader = functools.partial(decode_image, mode="GRAY")
    assert_same(list(loader), list(DataLoader(data)))


def test_words(tmp_path: Path):
    words = native(folder(tmp_path, encode("JPEG"), transform=TRANSFORMS["v2"])).explain()
    assert "lane: native" in words
    assert "what decode_image makes in the mode UNCHANGED; Resize, CenterCrop, ToDtype" in words
    assert "bit for bit what torchvision and torch make of them" in words


def test_counted_by_format(tmp_path: Path):
    loader = native(stray(tmp_path, encode("GIF")))
    list(loader)
    stats = loader.stats()
    assert stats["pillow_fallbacks"] == {}
    assert stats["torchvision_fallbacks"] == {"gif": 1}
    assert stats["torchvision_fallback_s"] > 0


@pytest.mark.parametrize("source", ["L", "RGB"])
def test_random_pixels_given_equal_parameters(tmp_path: Path, source: str):
    steps = [v2.RandomResizedCrop(16), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]
    data = folder(tmp_path, encode("JPEG", source), transform=v2.Compose(steps))
    lowered = lower(data)
    column = lowered.leaves[0][1].native
    whole = decode_image(data.samples[0][0])
    carried = {
        "crop": lambda image, region: v2.functional.crop(image, *region),
        "resize": lambda image, size, _: v2.functional.resize(image, size, antialias=True),
        "flip": lambda image, down: (
            v2.functional.vertical_flip if down else v2.functional.horizontal_flip
        )(image),
    }
    plans = set()
    for seed in range(12):
        plan = column.plan(*whole.shape[1:], len(whole), seed=seed)
        image = whole
        for name, *arguments in plan:
            image = carried[name](image, *arguments)
        made, _ = lowered.program.sample(0, seed=seed)
        assert torch.equal(made, image)
        plans.add(str(plan))
    assert len(plans) == 12
