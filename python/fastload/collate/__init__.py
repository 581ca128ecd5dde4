"""Batches of samples of different sizes: padded, unpadded, or packed into rows.

A rule says what becomes of one field: `Pad`, `Unpadded`, `Keep`. `PadCollate` applies rules to samples of
any structure, `PackCollate` puts documents side by side. Both are plain callables from a list of samples
to a batch, for the `collate_fn` of torch's DataLoader as well as ours; their bytes are written natively.
So is `default_collate`, which returns what torch's returns, dtypes included, only faster.
"""

from fastload.collate.pack_collate import PackCollate
from fastload.collate.pad_collate import PadCollate
from fastload.collate.rules import Flat, Keep, Pad, Unpadded
from fastload.collate.stacking import default_collate

__all__ = ["Flat", "Keep", "PackCollate", "Pad", "PadCollate", "Unpadded", "default_collate"]
