"""Ten classes of pictures as people write them, none of which fastload recognises."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torchvision
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms as v1
from torchvision.io import ImageReadMode, read_image
from torchvision.transforms import functional, v2

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write(folder: Path, count: int = 256, seed: int = 0) -> None:
    """Writes photographs with masks, boxes and a table; of about 500 x 375 pixels, in three folders."""
    rng = np.random.default_rng(seed)
    rows = []
    for kind in ("train/a", "train/b", "train/c", "masks", "boxes"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        width, height = (int(side) for side in rng.integers((460, 340), (540, 410)))
        coarse = rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
        smooth = np.asarray(
            Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        )
        noise = rng.integers(-12, 13, (height, width, 1))
        pixels = (smooth.astype(np.int16) + noise).clip(0, 255).astype(np.uint8)
        name = f"train/{'abc'[number % 3]}/{number:04}.jpg"
        Image.fromarray(pixels).save(folder / name, quality=90)
        mask = Image.fromarray((coarse[..., 0] // 12).astype(np.uint8)).resize((width, height), 0)
        mask.save(folder / "masks" / f"{number:04}.png")
        box = {"boxes": [[10, 20, width // 2, height // 2]], "labels": [number % 5]}
        (folder / "boxes" / f"{number:04}.json").write_text(json.dumps(box))
        rows.append({"file": name, "label": number % 3, "split": "train"})
    pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)


class _Pictures(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.table = pd.read_csv(self.folder / "table.csv")
        self.names = list(self.table["file"])

    def __len__(self) -> int:
        return len(self.names)


TRAIN = v1.Compose(
    [
        v1.RandomResizedCrop(224),
        v1.RandomHorizontalFlip(),
        v1.ToTensor(),
        v1.Normalize(MEAN, DEVIATION),
    ]
)


class FrameRows(_Pictures):
    """A row of a data frame names the file and its label."""

    def __getitem__(self, index: int) -> Any:
        row = self.table.iloc[index]
        image = Image.open(self.folder / row["file"]).convert("RGB")
        return TRAIN(image), torch.tensor(row["label"])


class JoinedNames(_Pictures):
    """A listing; the label is in the name of the folder."""

    def __getitem__(self, index: int) -> Any:
        path = f"{self.folder}/{self.names[index]}"
        with Image.open(path) as file:
            image = file.convert("RGB")
        return {"image": TRAIN(image), "label": "abc".index(path.split("/")[-2])}


class Aligned(_Pictures):
    """Two pictures with one random crop, as in restoration."""

    def __getitem__(self, index: int) -> Any:
        sharp = Image.open(self.folder / self.names[index]).convert("RGB")
        other = Image.open(self.folder / self.names[index]).convert("RGB")
        top, left, height, width = v1.RandomCrop.get_params(sharp, (192, 192))
        sharp = functional.crop(sharp, top, left, height, width)
        other = functional.crop(other, top, left, height, width).resize(
            (48, 48), Image.Resampling.BICUBIC
        )
        if torch.rand(1) < 0.5:
            sharp, other = functional.hflip(sharp), functional.hflip(other)
        return functional.to_tensor(other), functional.to_tensor(sharp)


class Masked(_Pictures):
    """An image and its mask of classes, scaled and cropped alike."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.folder / self.names[index]).convert("RGB")
        mask = Image.open(self.folder / "masks" / f"{index:04}.png")
        box = v1.RandomResizedCrop.get_params(image, (0.25, 1.0), (0.75, 1.33))
        image = functional.resized_crop(image, *box, [256, 256])
        mask = functional.resized_crop(mask, *box, [256, 256], v1.InterpolationMode.NEAREST)
        target = torch.from_numpy(np.array(mask)).long()
        return functional.normalize(functional.to_tensor(image), MEAN, DEVIATION), target


class Placeholder(_Pictures):
    """A file that cannot be read is a grey picture."""

    def __getitem__(self, index: int) -> Any:
        try:
            image = Image.open(self.folder / self.names[index]).convert("RGB")
        except OSError:
            image = Image.new("RGB", (256, 256), "grey")
        return TRAIN(image), index


class Stacked(_Pictures):
    """Four frames in a row, cropped alike, each by itself."""

    def __getitem__(self, index: int) -> Any:
        first = min(index, len(self) - 4)
        frames = [Image.open(self.folder / name) for name in self.names[first : first + 4]]
        corner = v1.RandomCrop.get_params(frames[0].crop((0, 0, 460, 340)), (128, 160))
        return torch.stack(
            [functional.to_tensor(functional.crop(frame, *corner)) for frame in frames]
        )


class Boxes(_Pictures):
    """Boxes from text files, scaled with the image."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.folder / self.names[index]).convert("RGB")
        known = json.loads((self.folder / "boxes" / f"{index:04}.json").read_text())
        boxes = torch.tensor(known["boxes"], dtype=torch.float32)
        width, height = image.size
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
        image = image.resize((256, 256), Image.Resampling.BILINEAR)
        boxes *= torch.tensor([256 / width, 256 / height] * 2)
        return functional.to_tensor(image), {
            "boxes": boxes,
            "labels": torch.tensor(known["labels"]),
        }


def hugging_face(folder: Path) -> Any:
    """A dataset of Hugging Face with a transform in Python."""
    import datasets

    pictures = _Pictures(folder)
    held = datasets.Dataset.from_dict(
        {
            "image": [str(folder / name) for name in pictures.names],
            "label": list(pictures.table["label"]),
        }
    ).cast_column("image", datasets.Image())
    chain = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )

    def transform(rows: Any) -> Any:
        images = [chain(image.convert("RGB")) for image in rows["image"]]
        return {"image": images, "label": [label + 1 for label in rows["label"]]}

    return held.with_transform(transform)


class Subclassed(torchvision.datasets.ImageFolder):
    """An ImageFolder that gives the path, too."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, label, self.samples[index][0][-8:]


def subclassed(folder: Path) -> Any:
    """Returns one with the usual transforms of evaluation, from the middle of a large picture."""
    return Subclassed(str(Path(folder) / "train"), TRAIN)


class ReadImage(_Pictures):
    """torchvision's own reader, and v2 on tensors."""

    chain = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, DEVIATION),
        ]
    )

    def __getitem__(self, index: int) -> Any:
        image = read_image(str(self.folder / self.names[index]), ImageReadMode.RGB)
        return self.chain(image), index


CLASSES: dict[str, Any] = {
    "frame rows": FrameRows,
    "joined names": JoinedNames,
    "two aligned": Aligned,
    "image and mask": Masked,
    "try, placeholder": Placeholder,
    "four frames": Stacked,
    "boxes from text": Boxes,
    "HF with_transform": hugging_face,
    "subclassed folder": subclassed,
    "read_image, v2": ReadImage,
}
