"""Token lists of one length in a Hugging Face dataset, in torch format: an epoch beside torch's.

20,000 lists of 512 int64 tokens and their labels, `with_format("torch")`, shuffled, batches of 64.
"""

import datasets
import numpy as np
from _contest import Bench, against_torch

COUNT, LENGTH, BATCH_SIZE = 20_000, 512, 64


def tokens() -> datasets.Dataset:
    """Returns the dataset, its tokens as an Arrow column of lists."""
    random = np.random.default_rng(0)
    columns = {
        "input_ids": list(random.integers(0, 50_000, (COUNT, LENGTH))),
        "label": random.integers(0, 2, COUNT),
    }
    return datasets.Dataset.from_dict(columns).with_format("torch")


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    dataset = tokens()
    against_torch(
        bench,
        "token lists",
        lambda kind, workers: kind(dataset, BATCH_SIZE, shuffle=True, num_workers=workers),
        COUNT,
        promised=10,
    )
    bench.close()


if __name__ == "__main__":
    main()
