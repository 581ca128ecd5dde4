"""Metrics over ranks: those of one process to the bit, and as many steps on each rank."""

import math
import re
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

import fastload
from fastload import BucketBatchSampler, Loader, gather_masked
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS

from .ranks import on_ranks

pytestmark = [MANY_WORKERS]

COUNT = 10_007
WORLDS = (1, 2, 3, 8)

POINTS = torch.randn(COUNT, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.randint(2, (COUNT,), generator=torch.Generator().manual_seed(1))


def dataset() -> fastload.Dataset:
    return fastload.Dataset(
        {"point": Rows(POINTS), "label": Rows(LABELS), "id": Rows(torch.arange(COUNT))}
    )


def judged(batch: Any) -> dict[str, torch.Tensor]:
    """Returns each sample's error, whether it is right, and its number; no other sample of the batch matters."""
    point, label = batch["point"], batch["label"]
    found = point[:, 0] * 0.3 + point[:, 1] * 0.5 - point[:, 2]
    return {"error": (found - label) ** 2, "right": (found > 0) == label, "id": batch["id"]}


def metrics(found: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {
        "mean": (math.fsum(found["error"].tolist()) / len(found["error"])).hex(),
        "accuracy": found["right"].double().mean().item().hex(),
        "ids": sorted(found["id"].tolist()) == list(range(COUNT)),
    }


def joined(parts: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def evaluated(loader: Loader[Any]) -> dict[str, Any]:
    """Returns the metrics by the rows of each step, and by all rows of the epoch, gathered once."""
    steps, parts, masks = [], [], []
    for batch in loader:
        mask = batch.pop("sample_mask")
        found = judged(batch)
        steps.append(gather_masked(found, mask))
        parts.append(found)
        masks.append(mask)
    once = gather_masked(joined(parts), torch.cat(masks))
    return {"steps": len(steps), "by step": metrics(joined(steps)), "once": metrics(once)}


def evaluate() -> dict[str, Any]:
    sampler: Any = DistributedSampler(dataset(), shuffle=True)  # type: ignore[arg-type]
    strided = Loader(dataset(), 64, sampler=sampler, sample_mask=True, num_workers=1)
    lengths = torch.randint(1, 50, (COUNT,), generator=torch.Generator().manual_seed(2))
    batches = BucketBatchSampler(lengths, 64, remainder="mask")
    planned = Loader(dataset(), batch_sampler=batches, num_workers=1)
    right, real, unmarked = [], [], 0
    for batch in strided:  # ranks have equally many rows, so that torch's own gather does
        shares = [torch.empty_like(batch["sample_mask"]) for _ in range(dist.get_world_size())]
        dist.all_gather(shares, batch["sample_mask"])
        real.append(torch.cat(shares))
        dist.all_gather(shares, judged(batch)["right"])
        right.append(torch.cat(shares))
        unmarked += len(real[-1])
    plain = torch.cat(right)[torch.cat(real)]
    return {
        "strided": evaluated(strided),
        "planned": evaluated(planned),
        "plain": [len(plain), plain.sum().item()],
        "unmarked": unmarked,
    }


KINDS = [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float64, torch.complex64]


def gather() -> dict[str, Any]:
    """Gathers 2, 0 and 1 rows of three ranks."""
    rank = dist.get_rank()
    mask = torch.tensor([[True, True], [False, False], [False, True]][rank])
    values = [
        torch.full((2, 3), rank + 1).to(kind) * torch.tensor([[1], [0]]).to(kind) for kind in KINDS
    ]
    found = gather_masked({"values": values, "one": (torch.tensor([rank, 10.0]),)}, mask)
    wanted = [torch.tensor([[1, 1, 1], [0, 0, 0], [0, 0, 0]]).to(kind) for kind in KINDS]
    grown = torch.ones(2, 0, 4, requires_grad=True)
    empty = gather_masked(grown, mask)
    pair = dist.new_group([0, 2])
    few = gather_masked(torch.tensor([rank, rank]), mask, group=pair) if rank != 1 else None
    try:
        gather_masked(torch.ones(2, 1 + rank // 2), mask)
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {
        "same": [
            bool((got == want).all()) for got, want in zip(found["values"], wanted, strict=True)
        ],
        "dtypes": [got.dtype == kind for got, kind in zip(found["values"], KINDS, strict=True)],
        "one": found["one"][0].tolist(),
        "empty": list(empty.shape),
        "few": few if few is None else few.tolist(),
        "refused": refused,
    }


def accelerated() -> dict[str, Any]:
    """Evaluates a loader that Accelerate divides."""
    from accelerate import Accelerator

    import fastload.accelerate

    fastload.accelerate.install()
    accelerator = Accelerator(cpu=True)
    loader: Any = accelerator.prepare(
        Loader(dataset(), 64, sample_mask=True, shuffle=True, num_workers=1)
    )
    ours, theirs, steps = [], [], 0
    for batch in loader:
        steps += 1
        mask = batch.pop("sample_mask")
        found = judged(batch)
        ours.append(gather_masked(found, mask))
        rows = accelerator.gather_for_metrics({**found, "mask": mask})
        assert rows.pop("mask").all()
        theirs.append(rows)
    return {"steps": steps, "ours": metrics(joined(ours)), "theirs": metrics(joined(theirs))}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What the ranks of all jobs found."""
    jobs = [(evaluate, world) for world in WORLDS] + [(gather, 3), (accelerated, 2)]
    return on_ranks(tmp_path_factory.mktemp("ranks"), jobs)


@pytest.fixture
def alone():
    """The metrics of all samples, in the order of the dataset, without a loader."""
    whole = {"point": POINTS, "label": LABELS, "id": torch.arange(COUNT)}
    return metrics(judged(whole))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("kind", ["strided", "planned"])
def test_metrics_are_those_of_one_process_to_the_bit(ranks, alone, kind, world):
    found = [each[kind] for each in ranks["evaluate", world]]
    assert {each["steps"] for each in found} == {math.ceil(COUNT / world / 64)}
    for each in found:
        assert each["by step"] == each["once"] == alone


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("world", WORLDS)
def test_torchs_own_gather_needs_nothing_but_the_mask(ranks, alone, world):
    right = judged({"point": POINTS, "label": LABELS, "id": LABELS})["right"]
    for each in ranks["evaluate", world]:
        assert each["plain"] == [COUNT, right.sum().item()]
        assert each["unmarked"] == math.ceil(COUNT / world) * world


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_accelerates_gather_and_ours_count_each_sample_once(ranks, alone):
    for each in ranks["accelerated", 2]:
        assert each["ours"] == each["theirs"] == alone
        assert each["steps"] == math.ceil(COUNT / 64 / 2)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rows_of_any_dtype_come_rank_by_rank(ranks):
    for rank, each in enumerate(ranks["gather", 3]):
        assert each["same"] == each["dtypes"] == [True] * len(KINDS)
        assert each["one"] == [0.0, 10.0, 10.0]
        assert each["empty"] == [3, 0, 4]
        assert each["few"] == (None if rank == 1 else [0, 0, 2])
        assert re.search(
            r"different shapes or dtypes; here they are torch.float32", each["refused"]
        )


def test_one_process_keeps_its_rows():
    mask = torch.tensor([True, False, True])
    found = gather_masked((torch.arange(3), {"a": torch.eye(3)}), mask)
    assert found[0].tolist() == [0, 2]
    assert found[1]["a"].shape == (2, 3)
    assert gather_masked([], mask) == []


@pytest.mark.parametrize(
    ("values", "mask", "kind", "words"),
    [
        (torch.ones(2), torch.ones(2), TypeError, r"bool \(B,\), but got torch.float32 \(2,\)"),
        (torch.ones(2), [True], TypeError, r"but got \[True\]"),
        (torch.ones(3), torch.tensor([True]), ValueError, r"shape \(3,\) does not have a row"),
        (torch.ones(()), torch.tensor([True]), ValueError, r"shape \(\) does not have a row"),
        ([1.0], torch.tensor([True]), TypeError, "should be tensors, but got float"),
    ],
)
def test_what_cannot_be_gathered_is_refused(values, mask, kind, words):
    with pytest.raises(kind, match=words):
        gather_masked(values, mask)
