"""Datasets in Python, as people write them: they draw from torch's, NumPy's and Python's generators."""

import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

from demo.loaders import MEAN, STD

SIDE, TOKENS, CHARACTERS, LONGEST_TOKEN = 224, 512, 1500, 6


class Photographs(Dataset[tuple[torch.Tensor, int]]):
    """JPEG files through Pillow; cut, mirrored and lit anew each time, with NumPy."""

    def __init__(self, root: Path, count: int) -> None:
        self.paths = [str(path) for path in sorted(root.glob("*/*.jpg"))][:count]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with Image.open(self.paths[index]) as file:
            image = file.convert("RGB")
        side = np.random.randint(SIDE // 2, min(image.size) + 1)
        left = np.random.randint(image.width - side + 1)
        top = np.random.randint(image.height - side + 1)
        window = (left, top, left + side, top + side)
        pixels = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, window))
        if random.random() < 0.5:
            pixels = pixels[:, ::-1]
        light = np.float32(torch.empty(1).uniform_(0.8, 1.2).item())
        scaled = (pixels.astype(np.float32) * (light / 255) - np.float32(MEAN)) / np.float32(STD)
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1))), index % 2


class Texts(Dataset[tuple[torch.Tensor, int]]):
    """Texts cut into the longest tokens of a vocabulary, some of them masked: a loop in Python."""

    def __init__(self, count: int) -> None:
        letters = random.Random(0)
        self.texts = ["".join(letters.choices("etaoin ", k=CHARACTERS)) for _ in range(count)]
        self.vocabulary = {
            text[start : start + length]
            for text in self.texts[:20]
            for length in range(1, LONGEST_TOKEN + 1)
            for start in range(0, CHARACTERS, length)
        }
        self.numbers = {token: number for number, token in enumerate(sorted(self.vocabulary), 2)}

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        text, numbers, ids, at = self.texts[index], self.numbers, [], 0
        while at < len(text):
            for length in range(LONGEST_TOKEN, 0, -1):
                number = numbers.get(text[at : at + length])
                if number is not None:
                    break
            ids.append(1 if random.random() < 0.15 else number)
            at += length
        ids = ids[:TOKENS]
        return torch.tensor(ids + [0] * (TOKENS - len(ids))), index % 2
