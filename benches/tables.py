"""Tables in files: JSON lines, CSV, parquet, and a flat file of tokens, beside the usual Python code.

JSON lines: 200,000 of five fields, text and label wanted; the rival reads a line at its place and parses it
with `json`. CSV and parquet: 1,000,000 rows of eight columns, shuffled, batches of 1024; the rival is
torch's TensorDataset of the table read once. A parquet file larger than its cache is read through row
groups: in order each is decoded once; shuffled, nearly every batch has rows of all of them. Tokens: 1 GB of uint16, windows of 1,024, shuffled, as int64 and as stored; the rival is `numpy.memmap`, the
limits copying the same windows out of memory, and making them int64. Rivals load as many samples as take seconds, drawn of all.
"""

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from _contest import (
    OURS,
    SPEED,
    Bench,
    against_torch,
    interleave,
    isolated,
    median,
    pace,
    peak_mb,
)
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

import fastload
from fastload.columns import Csv, Jsonl, Parquet, Tokens

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "tables"
LINES, ROWS, COLUMNS, BATCH_SIZE = 200_000, 1_000_000, 8, 1024
TOKENS, WINDOW, WINDOWS_PER_BATCH = 500_000_000, 1024, 32
NAMES = [f"c{number}" for number in range(COLUMNS)]
RIVAL_LINES, RIVAL_ROWS, RIVAL_WINDOWS = 100_000, 100_000, 40_000
"""Samples of torch's epochs."""
STORED = "fastload, num_workers=2, tokens as stored"
COPY = "copying the windows out of memory"
WIDENED = "copying them and making them int64"
READ = "the bytes of the file, read in one thread"
PIECE = 1 << 20


class Lines(Dataset[tuple[str, int]]):
    """What people write around a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.starts = [0]
            for line in file:
                self.starts.append(self.starts[-1] + len(line))
        self.file = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> tuple[str, int]:
        start, end = self.starts[index : index + 2]
        record = json.loads(
            os.pread(self.file, end - start, start)
        )  # forked workers share the file
        return record["text"], record["label"]


class Windows(Dataset[torch.Tensor]):
    """What people write around a file of tokens."""

    def __init__(self, path: Path) -> None:
        self.tokens = np.memmap(path, np.uint16, "r")

    def __len__(self) -> int:
        return len(self.tokens) // WINDOW

    def __getitem__(self, index: int) -> torch.Tensor:
        window = self.tokens[index * WINDOW : (index + 1) * WINDOW]
        return torch.from_numpy(window.astype(np.int64))


def lines() -> Path:
    """Returns the file of JSON lines; makes it once."""
    path = CACHE / "lines.jsonl"
    if not path.exists():
        random = np.random.default_rng(0)
        words = [f"word{number}" for number in range(1000)]
        with path.open("w", encoding="utf-8") as file:
            for number in range(LINES):
                text = " ".join(random.choice(words, random.integers(5, 60)))
                record = {"id": number, "text": text, "label": int(random.integers(10))}
                record |= {"score": float(random.random()), "tags": ["a", "b"]}
                file.write(json.dumps(record) + "\n")
    return path


def table() -> tuple[pa.Table, Path, Path]:
    """Returns a table of half int64 and half float32, and its parquet and CSV files."""
    random = np.random.default_rng(0)
    columns = {
        name: random.standard_normal(ROWS, np.float32)
        if number % 2
        else random.integers(0, 1 << 40, ROWS)
        for number, name in enumerate(NAMES)
    }
    data = pa.table(columns)
    parquet, csv = CACHE / "table.parquet", CACHE / "table.csv"
    if not parquet.exists():
        pq.write_table(data, parquet, row_group_size=65_536)
    if not csv.exists():
        pyarrow.csv.write_csv(data, csv)
    return data, parquet, csv


def tokens() -> Path:
    """Returns the file of tokens; makes it once."""
    path = CACHE / "tokens.bin"
    if not path.exists():
        random = np.random.default_rng(0)
        with path.open("wb") as file:
            for _ in range(TOKENS // 10_000_000):
                file.write(random.integers(0, 50_000, 10_000_000, np.uint16).tobytes())
    return path


def read(path: Path) -> Iterator[int]:
    """Reads a file and drops what it holds."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield len(piece)


def loader(kind: Any, ours: Any, theirs: Any, batch_size: int, workers: int, count: int) -> Any:
    """Makes a loader: ours of all samples, torch's of `count` that are drawn of all."""
    if kind is fastload.Loader:
        return kind(ours, batch_size, shuffle=True, num_workers=workers)
    sampler = RandomSampler(theirs, num_samples=count)
    return kind(theirs, batch_size, sampler=sampler, num_workers=workers)


def text_and_label() -> fastload.Dataset:
    """Returns two fields of the JSON lines."""
    return fastload.Dataset(tuple(Jsonl(lines(), ["text", "label"]).columns.values()))


def memory(who: str, what: str) -> float:
    """Returns what an epoch takes at most above the start."""
    if what == "JSON lines":
        ours: Any = text_and_label()
        theirs: Any = Lines(lines())
        batch_size = 64
    else:
        data, parquet, _ = table()
        ours = fastload.Dataset(tuple(Parquet(parquet, name) for name in NAMES))
        theirs = TensorDataset(*(torch.from_numpy(data[name].to_numpy().copy()) for name in NAMES))
        batch_size = BATCH_SIZE
        del data
    kind = fastload.Loader if who == OURS else DataLoader
    return peak_mb(lambda: loader(kind, ours, theirs, batch_size, 2, RIVAL_ROWS))


def copied(memory: torch.Tensor) -> Iterator[torch.Tensor]:
    """Copies all windows in a random order, batch by batch."""
    for indices in torch.randperm(len(memory)).split(WINDOWS_PER_BATCH):
        yield memory.index_select(0, indices)


def race_tables(bench: Bench) -> None:
    """Races columns of files against a table in memory."""
    data, parquet, csv = table()
    memory = TensorDataset(*(torch.from_numpy(data[name].to_numpy().copy()) for name in NAMES))
    for title, path, columns in (
        ("parquet", parquet, tuple(Parquet(parquet, name) for name in NAMES)),
        ("CSV", csv, tuple(Csv(csv, NAMES).columns.values())),
    ):
        ours = fastload.Dataset(columns)

        def load(kind: Any, workers: int, ours: Any = ours) -> Any:
            return loader(kind, ours, memory, BATCH_SIZE, workers, RIVAL_ROWS)

        against_torch(
            bench,
            f"{title}: {ROWS:,} rows of {COLUMNS} columns",
            load,
            ROWS,
            promised=10,
            rival_samples=RIVAL_ROWS,
            limits={READ: functools.partial(read, path)},
        )
    small = fastload.Dataset(tuple(Parquet(parquet, name, cache="8MiB") for name in NAMES))

    def beyond(count: int, *, shuffle: bool) -> dict[str, float]:
        order = RandomSampler(small, num_samples=count) if shuffle else range(count)
        return pace(lambda: fastload.Loader(small, BATCH_SIZE, sampler=order, num_workers=2), count)

    figures = interleave(
        {
            "in order": functools.partial(beyond, ROWS, shuffle=False),
            "shuffled": functools.partial(beyond, 20 * BATCH_SIZE, shuffle=True),
        },
        bench.rounds,
    )
    bench.show("parquet, a cache of 8 MiB for a table of 48 MB", figures, digits=0)


def race_tokens(bench: Bench) -> None:
    """Races windows of a file of tokens."""
    path = tokens()
    column, theirs = Tokens(path, WINDOW, "uint16"), Windows(path)
    count = len(theirs)
    assert len(column) == count
    assert torch.equal(column[12345], theirs[12345])

    def load(kind: Any, workers: int) -> Any:
        return loader(kind, column, theirs, WINDOWS_PER_BATCH, workers, RIVAL_WINDOWS)

    memory = torch.from_numpy(np.fromfile(path, np.uint16).view(np.int16)[: count * WINDOW])
    memory = memory.view(count, WINDOW)
    stored = Tokens(path, WINDOW, "uint16", out_dtype="uint16")
    figures = against_torch(
        bench,
        f"tokens: {count:,} windows of {WINDOW:,}",
        load,
        count,
        promised=5,
        rival_samples=RIVAL_WINDOWS,
        limits={
            STORED: lambda: loader(fastload.Loader, stored, theirs, WINDOWS_PER_BATCH, 2, count),
            COPY: functools.partial(copied, memory),
            WIDENED: lambda: map(torch.Tensor.long, copied(memory)),
        },
    )
    for ours, limit in ((STORED, COPY), (OURS, WIDENED)):
        ratio = median(figures, ours, SPEED) / median(figures, limit, SPEED)
        bench.claim(f"{ours}: samples/s by {limit}", ratio, 0.5, at_least=True)


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    CACHE.mkdir(parents=True, exist_ok=True)
    ours, theirs = text_and_label(), Lines(lines())
    assert (ours[77][0], int(ours[77][1])) == theirs[77]

    def load(kind: Any, workers: int) -> Any:
        return loader(kind, ours, theirs, 64, workers, RIVAL_LINES)

    against_torch(
        bench,
        f"{LINES:,} JSON lines",
        load,
        LINES,
        promised=3,
        rival_samples=RIVAL_LINES,
        limits={READ: functools.partial(read, lines())},
    )
    race_tables(bench)
    race_tokens(bench)
    bench.show(
        "Memory above the start, MB",
        {
            who: {what: [isolated(memory, who, what)] for what in ("JSON lines", "parquet")}
            for who in (OURS, "torch, num_workers=2")
        },
    )
    bench.close()


if __name__ == "__main__":
    main()
