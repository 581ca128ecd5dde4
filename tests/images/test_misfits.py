"""Images that a transform cannot take: torchvision's exception, in its words, with the file named."""

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import torchvision.datasets
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.transforms import v2

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, assert_same, assert_same_outcomes, outcomes
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

SIDES = [(30, 40), (5, 7), (1, 900), (900, 1), (24, 24)]
"""Height and width of the images: those in the middle are misfits."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    (root / "one").mkdir()
    draw = np.random.default_rng(3)
    for number, (height, width) in enumerate(SIDES):
        pixels = draw.integers(0, 256, (height, width, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(root / "one" / f"{number}.png")
    return root


def folder(root: Path, *steps: Any) -> Any:
    return torchvision.datasets.ImageFolder(root, v1.Compose(list(steps)))


MISFITS = {
    "crop": lambda f: [f.RandomCrop(24), f.PILToTensor()],
    "crop of a row": lambda f: [f.RandomCrop((5, 30)), f.CenterCrop(4), f.PILToTensor()],
    "crop of a tensor": lambda f: [f.PILToTensor(), f.RandomCrop(24)],
    "padded crop": lambda f: [f.RandomCrop(26, padding=1), f.CenterCrop(4), f.PILToTensor()],
    "resize to nothing": lambda f: [f.Resize(9, max_size=10), f.CenterCrop(4), f.PILToTensor()],
    "nearest to nothing": lambda f: [
        f.Resize(9, f.InterpolationMode.NEAREST, max_size=10),
        f.RandomCrop(4, pad_if_needed=True),
        f.PILToTensor(),
    ],
    "blur": lambda f: [f.GaussianBlur((9, 5), 2.0), f.CenterCrop(4), f.PILToTensor()],
    "blur down": lambda f: [f.GaussianBlur((3, 11), 2.0), f.CenterCrop(4), f.PILToTensor()],
}
TENSORS = {
    "tensor to nothing": [v2.PILToTensor(), v2.Resize(9, max_size=10), v2.CenterCrop(4)],
    "exactly to nothing": [
        v2.PILToTensor(),
        v2.Resize(9, v2.InterpolationMode.NEAREST_EXACT, max_size=10),
        v2.CenterCrop(4),
    ],
}
CHAINS = {
    **{f"{f.__name__[-2:]} {name}": make(f) for f in (v1, v2) for name, make in MISFITS.items()},
    **TENSORS,
}


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_the_exception_is_torchvisions(root: Path, steps: list[Any]):
    dataset = folder(root, *steps)
    want = outcomes(DataLoader(dataset))
    wrong = [place for place, each in enumerate(want) if isinstance(each, Exception)]
    assert wrong
    loader = fastload.Loader(dataset, **SIZES)
    choice = lanes.choose(loader)
    if choice.lane != "native":  # no CPU for torch's order of additions, or an older Pillow
        pytest.skip(choice.why)
    got = outcomes(loader)
    for place, each in enumerate(got):
        if place in wrong:
            path = dataset.samples[place][0]
            assert each.__notes__ == [
                f"while transforming {path!r}",
                f"while loading sample {place} (batch {place})",
            ]
    assert [type(each) for each in got] == [type(each) for each in want]
    assert_same_outcomes([got[place] for place in wrong], [want[place] for place in wrong])


def test_a_damaged_file_is_that_first(root: Path, tmp_path: Path):
    (tmp_path / "one").mkdir()
    content = (root / "one" / "1.png").read_bytes()
    (tmp_path / "one" / "0.png").write_bytes(content[: len(content) * 2 // 3])
    dataset = folder(tmp_path, v1.RandomCrop(24), v1.PILToTensor())
    want = outcomes(DataLoader(dataset))
    assert isinstance(want[0], OSError)
    assert_same_outcomes(outcomes(fastload.Loader(dataset, **SIZES)), want)


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("family", [v1, v2])
def test_images_are_mirrored_more_than_once(root: Path, family: Any, mode: str):
    pad = family.Pad((70, 3, 9, 50), padding_mode=mode)
    dataset = folder(root, pad, family.CenterCrop(40), family.PILToTensor())
    loader = fastload.Loader(dataset, **SIZES)
    assert lanes.choose(loader).lane == "native"
    assert_same(list(loader), list(DataLoader(dataset)))


@pytest.mark.parametrize(("mode", "most"), [("reflect", 19), ("symmetric", 20)])
@pytest.mark.parametrize("family", [v1, v2])
def test_tensors_are_mirrored_once(root: Path, family: Any, mode: str, most: int):
    """Native where every image is large enough; otherwise torch has to refuse those that are not."""

    def choice(*steps: Any) -> lanes.Choice:
        return lanes.choose(fastload.Loader(folder(root, *steps), num_workers=1))

    resize = family.Resize((20, 20))
    pad = family.Pad(most, padding_mode=mode)
    dataset = folder(root, resize, family.PILToTensor(), pad)
    loader = fastload.Loader(dataset, 5, **SIZES)
    assert lanes.choose(loader).lane == "native"
    assert_same(list(loader), list(DataLoader(dataset, 5)))
    beyond = family.Pad((most + 1, 0), padding_mode=mode)
    with pytest.raises((IndexError, RuntimeError)):
        beyond(torch.zeros(3, 20, 20, dtype=torch.uint8))
    for steps in ([resize, family.PILToTensor(), beyond], [family.PILToTensor(), pad]):
        assert f"Pad: it adds more pixels to a tensor than the tensor may have to {mode}" in (
            choice(*steps).why
        )
    crops = [
        family.RandomCrop(20 + 2 * most, padding=most, padding_mode=mode),
        family.RandomCrop(20 + most, pad_if_needed=True, padding_mode=mode),
    ]
    for crop in crops:
        assert choice(resize, family.PILToTensor(), crop).lane == "native"
    for crop in (
        family.RandomCrop(20, padding=most + 1, padding_mode=mode),
        family.RandomCrop(21 + most, pad_if_needed=True, padding_mode=mode),
    ):
        assert "RandomCrop: it adds more pixels" in choice(resize, family.PILToTensor(), crop).why
