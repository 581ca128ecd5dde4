"""Datasets of torch, Hugging Face and our own in worker threads, as in worker processes."""

from typing import Any

import pytest
import torch
from torch.utils.data.datapipes.iter import IterableWrapper
from torch.utils.data.datapipes.map import SequenceWrapper

import fastload
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.threads import assert_as_processes, threads

pytestmark = MANY_WORKERS


@pytest.mark.parametrize("persistent_workers", [False, True])
def test_data_pipes(persistent_workers):
    pipe = IterableWrapper(range(20)).shuffle().sharding_filter()
    assert_as_processes(pipe, shuffle=True, persistent_workers=persistent_workers)
    assert_as_processes(SequenceWrapper(range(20)), persistent_workers=persistent_workers)


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    rows = {"number": list(range(20)), "text": [str(number) for number in range(20)]}
    dataset = datasets.Dataset.from_dict(rows).with_format("torch")
    noisy = dataset.with_transform(lambda batch: {**batch, "drawn": torch.rand(len(batch["text"]))})
    for each in (dataset, noisy, dataset.to_iterable_dataset(4).shuffle(3)):
        assert_as_processes(each, collate_fn=list)


def own(samples: list[Any]) -> Any:
    return torch.stack([sample[0] for sample in samples])


def test_columns_with_a_collation_in_python(caplog):
    dataset = fastload.Dataset((Rows(torch.arange(20)), Rows(torch.rand(20, 3))))
    loader = threads(dataset, batch_size=4, num_workers=2, collate_fn=own)
    assert_same(list(loader), [own([dataset[n] for n in range(m, m + 4)]) for m in range(0, 20, 4)])
    assert not caplog.records
