"""What tests of the monitor have in common: datasets of each lane, and the steps that sinks were given."""

import numpy as np
import torch
from torch.utils.data import Dataset

from fastload.columns import Rows

ROWS = 46
BATCH = 4
BATCHES = 12  # the last one has two samples


class Python(Dataset):
    """Samples that only Python can make."""

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.full((8,), float(hash(str(index)) % 97)), index


LANES = {
    "native": (lambda: Rows(torch.arange(8.0 * ROWS).reshape(ROWS, 8)), {}),
    "process": (Python, {"num_workers": 2}),
    "persistent": (Python, {"num_workers": 2, "persistent_workers": True}),
    "threads": (Python, {"num_workers": 2, "lane": "threads"}),
    "consumer": (Python, {}),
    "inline": (Python, {"num_workers": 0}),
}


class Kept:
    """A sink that keeps the windows and the last findings."""

    def __init__(self):
        self.windows = []
        self.findings = []

    def __call__(self, window, findings):
        self.windows.append(window)
        self.findings = list(findings)

    def column(self, name):
        """Returns a column of the steps of all windows."""
        return np.concatenate([getattr(window.steps, name) for window in self.windows])

    def names(self):
        return {name for window in self.windows for name in window.scalars}
