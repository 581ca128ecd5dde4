"""Columns: the leaves of a native dataset.

A column is a map-style dataset of its own: `column[i]` is one sample, made by the same native
code that makes batches. Columns hold no samples, only their location and how to make each. They are immutable
and pickle as their arguments.
"""

from fastload.columns.arrays import Npy, Npz, Pt
from fastload.columns.arrow import Arrow
from fastload.columns.audio import Audio
from fastload.columns.column import Column
from fastload.columns.csv import Csv
from fastload.columns.flat import Megatron, Records, Tokens
from fastload.columns.image import Image
from fastload.columns.jsonl import Jsonl
from fastload.columns.parquet import Parquet
from fastload.columns.rows import Ragged, Rows
from fastload.columns.tar import Tar

__all__ = [
    "Arrow",
    "Audio",
    "Column",
    "Csv",
    "Image",
    "Jsonl",
    "Megatron",
    "Npy",
    "Npz",
    "Parquet",
    "Pt",
    "Ragged",
    "Records",
    "Rows",
    "Tar",
    "Tokens",
]
