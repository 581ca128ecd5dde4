"""Columns: the leaves of a native dataset.

A column is a map-style dataset of its own: `column[i]` is one sample, made by the same native
code that makes batches. Columns hold no samples; they say where samples are and how each is
made. They never change once made, and pickle as what they were made from.
"""

from fastload.columns.column import Column
from fastload.columns.image import Image
from fastload.columns.npy import Npy
from fastload.columns.ragged import Ragged
from fastload.columns.rows import Rows
from fastload.columns.tar import Tar

__all__ = ["Column", "Image", "Npy", "Ragged", "Rows", "Tar"]
