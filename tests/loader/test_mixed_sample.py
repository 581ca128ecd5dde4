"""One sample of many kinds of files, in the native lane, beside what people write in Python."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import torch
from PIL import Image as Pillow
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

import fastload
from fastload.columns import Audio, Image, Parquet, Ragged
from tests.shared.compare import MANY_WORKERS, assert_same

pytestmark = MANY_WORKERS

COUNT, FRAMES, TOKENS = 23, 160, 12
SCALARS = {"label": pa.int64(), "weight": pa.float32(), "good": pa.bool_()}
TRANSFORM = transforms.Compose(
    [
        *(transforms.Resize(24), transforms.CenterCrop(20), transforms.ToTensor()),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)


class Files:
    """The files of all samples."""

    def __init__(self, folder):
        random = np.random.default_rng(0)
        self.images = [folder / f"{number}.jpg" for number in range(COUNT)]
        self.sounds = [folder / f"{number}.wav" for number in range(COUNT)]
        for image, sound in zip(self.images, self.sounds, strict=True):
            height, width = random.integers(28, 60, 2)
            pixels = random.integers(0, 256, (height // 4, width // 4, 3), np.uint8)
            Pillow.fromarray(pixels).resize((width, height)).save(image, quality=90)
            soundfile.write(sound, random.uniform(-1, 1, (FRAMES, 2)), 8000, subtype="PCM_16")
        self.tokens = random.integers(0, 50_000, COUNT * TOKENS)
        self.table = folder / "table.parquet"
        scalars = {
            "label": random.integers(-(2**40), 2**40, COUNT),
            "weight": random.standard_normal(COUNT).astype(np.float32),
            "good": random.random(COUNT) < 0.5,
        }
        pq.write_table(pa.table(scalars), self.table, row_group_size=7)


class InPython(Dataset):
    """What people write around such files."""

    def __init__(self, files):
        self.files = files
        table = pq.read_table(files.table)
        self.scalars = {name: table[name].to_numpy() for name in SCALARS}

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        encoded = io.BytesIO(self.files.images[index].read_bytes())
        sound, _ = soundfile.read(self.files.sounds[index], dtype="float32", always_2d=True)
        tokens = self.files.tokens[index * TOKENS : (index + 1) * TOKENS]
        return {
            "image": TRANSFORM(Pillow.open(encoded).convert("RGB")),
            "sound": torch.from_numpy(np.ascontiguousarray(sound.T)),
            "tokens": torch.from_numpy(tokens),
            "scalars": tuple(torch.tensor(self.scalars[name][index]) for name in SCALARS),
        }


def native(files):
    """The same as columns."""
    offsets = torch.arange(COUNT + 1) * TOKENS
    return fastload.Dataset(
        {
            "image": Image(files.images, transform=TRANSFORM),
            "sound": Audio(files.sounds),
            "tokens": Ragged(torch.from_numpy(files.tokens), offsets),
            "scalars": tuple(Parquet(files.table, name) for name in SCALARS),
        }
    )


@pytest.mark.parametrize("num_workers", [1, 2, 8])
def test_a_sample_of_many_kinds_is_that_of_python(tmp_path, num_workers):
    files = Files(tmp_path)
    torch.manual_seed(0)
    theirs = list(DataLoader(InPython(files), batch_size=5, shuffle=True))
    torch.manual_seed(0)
    loader = fastload.Loader(
        native(files), batch_size=5, shuffle=True, num_workers=num_workers, lane="native"
    )
    assert_same(list(loader), theirs)


def test_one_sample_is_that_of_python(tmp_path):
    files = Files(tmp_path)
    ours, theirs = native(files), InPython(files)
    for index in (0, 11, COUNT - 1):
        assert_same(ours[index], theirs[index])
