"""Datasets of classes as people write them, for the tests of what is read from their code."""

import functools
import itertools
import linecache
import pathlib
import random
import textwrap
import warnings

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

N = 23
_files = itertools.count()


class Held(Dataset):
    """Holds what it is given; as long as its first attribute."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __len__(self):
        return 23


# --- what is read


class Pairs(Dataset):
    def __init__(self, rows, labels):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]


class Encoded(Dataset):
    """As in the tutorials of transformers."""

    def __init__(self, encodings, labels):
        self.encodings = encodings
        self.labels = labels

    def __getitem__(self, idx):
        item = {key: torch.tensor(val[idx]) for key, val in self.encodings.items()}
        item["labels"] = torch.tensor(self.labels[idx])
        return item

    def __len__(self):
        return len(self.labels)


class Forecast(Dataset):
    def __init__(self, series, window=6, horizon=2):
        self.series = series
        self.window = window
        self.horizon = horizon

    def __len__(self):
        return len(self.series) - self.window - self.horizon + 1

    def __getitem__(self, index: int):
        """Returns a window, and what comes after it."""
        begin = index
        end = begin + self.window
        x = self.series[begin:end]
        y = self.series[end : end + self.horizon]
        return torch.from_numpy(x).float(), torch.tensor(y, dtype=torch.float32)


class Characters(Dataset):
    def __init__(self, text, block_size=8):
        self.stoi = {letter: place for place, letter in enumerate(sorted(set(text)))}
        self.data = torch.tensor([self.stoi[letter] for letter in text], dtype=torch.long)
        self.block_size = block_size

    def __len__(self):
        return (len(self.data) - 1) // self.block_size

    def __getitem__(self, idx):
        start = idx * self.block_size
        chunk = self.data[start : start + self.block_size + 1]
        return chunk[:-1], chunk[1:]


class FrameRows(Dataset):
    def __init__(self, df):
        self.df = df

    def __len__(self):
        return len(self.df)

    def __getitem__(self, idx):
        row = self.df.iloc[idx]
        features = (
            torch.tensor([row["a"], self.df.iloc[idx, 1]], dtype=torch.float32) if 0 else row["a"]
        )
        return {
            "text": row["text"],
            "label": torch.tensor(row["label"], dtype=torch.long),
            "score": float(self.df["score"].iloc[idx]),
            "features": features,
        }


class ImagesInArray(Dataset):
    def __init__(self, images, labels, transform=None, train=True):
        self.images = images
        self.labels = labels
        self.transform = transform
        self.train = train

    def __len__(self):
        return self.images.shape[0]

    def __getitem__(self, idx):
        image = torch.from_numpy(self.images[idx]).permute(2, 0, 1).float() / 255.0
        if self.transform is not None:
            image = self.transform(image)
        if self.train:
            return image, int(self.labels[idx])
        return image


# --- what is refused


class Drawn(Held):
    def __getitem__(self, index):
        return self.rows[index] + random.random()


class TorchDrawn(Held):
    def __getitem__(self, index):
        return self.rows[index] + torch.randn(4)


class Counted(Held):
    def __getitem__(self, index):
        self.count = self.count + 1
        return self.rows[index]


class Appended(Held):
    def __getitem__(self, index):
        row = self.lists[index]
        row.append(-1)
        return len(row)


class Cached(Held):
    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = self.rows[index]
        return self.cache[index]


class Tried(Held):
    def __getitem__(self, index):
        try:
            return self.rows[index]
        except IndexError:
            return self.rows[0]


class Searched(Held):
    def __getitem__(self, index):
        while index > 10:
            index -= 10
        return self.rows[index]


class Opened(Held):
    def __getitem__(self, index):
        with open(self.paths[index]) as file:  # noqa: PTH123
            return file.read()


class Loaded(Held):
    def __getitem__(self, index):
        return np.load(self.paths[index])


class Printed(Held):
    def __getitem__(self, index):
        print(index)  # noqa: T201
        return self.rows[index]


class Branching(Held):
    def __getitem__(self, index):
        if self.labels[index] == 1:
            return self.rows[index]
        return -self.rows[index]


class InPlace(Held):
    def __getitem__(self, index):
        row = self.rows[index]
        row += 1
        return row


class Hooked(Held):
    def __getattr__(self, name):
        return self.__dict__["rows"]

    def __getitem__(self, index):
        return self.anything[index]


class Described:
    def __get__(self, instance, kind):
        return torch.rand(23, 4)


class WithDescriptor(Held):
    rows = Described()

    def __getitem__(self, index):
        return self.rows[index]


def logged(method):
    @functools.wraps(method)
    def wrapper(*arguments):
        return method(*arguments)

    return wrapper


class Wrapped(Held):
    @logged
    def __getitem__(self, index):
        return self.rows[index]


class Lambda(Held):
    __getitem__ = lambda self, index: self.rows[index]  # noqa: E731


class Workers(Held):
    def __getitem__(self, index):
        info = get_worker_info()
        return self.rows[index] if info is None else self.rows[0]


class Reduced(Held):
    def __getitem__(self, index):
        return self.rows[index].mean()


class Imported(Held):
    def __getitem__(self, index):
        import math

        return self.rows[index] * math.pi


class Ragged(Held):
    """Windows that are cut short at the end."""

    def __getitem__(self, index):
        return self.rows[index : index + 4]


class Called(Held):
    def __getitem__(self, index):
        return self.tokenizer(self.texts[index])


class Missing(Held):
    """A column of text with gaps."""

    def __getitem__(self, index):
        return self.df.iloc[index]["text"]


class Powered(Held):
    def __getitem__(self, index):
        return self.rows[index] ** 2


class Listed(Held):
    """Makes whole batches itself."""

    def __getitem__(self, index):
        return self.rows[index]

    def __getitems__(self, indices):
        return [self.rows[index] for index in indices]


class Iterated(Held):
    def __getitem__(self, index):
        return next(self.source)


class Generated(Held):
    def __getitem__(self, index):
        return sum(value for value in self.labels)


class Path(Held):
    def __getitem__(self, index):
        return pathlib.Path(self.paths[index]).read_text()


# --- what is drawn from a grammar, or listed in a table

SOURCE = """
class Made(Dataset):
    def __init__(self, attributes):
        self.__dict__.update(attributes)

    def __len__(self):
        return {count}

    def helped(self, value, other=None):
        if other is None:
            return value
        return other

    def mark(self, named):
        named["b"] = 1
        return 1

    def __getitem__(self, i):
{body}
"""


def made(body, attributes, count=N):
    """Returns a dataset of a class with a body of `__getitem__`, whose source Python finds."""
    source = SOURCE.format(count=count, body=textwrap.indent(body, " " * 8))
    file = f"<made {next(_files)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = {"Dataset": Dataset, "torch": torch, "np": np, "__name__": "made"}
    with warnings.catch_warnings():  # of literals that are compared
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, file, "exec"), names)
    return names["Made"](attributes)
