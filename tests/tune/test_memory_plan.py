"""The memory plan: tiers, budgets, and what is refused."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastload.tune.memory import MemoryRefused, Watch, plan_memory
from tests.machine.test_memory_account import host, rooted

GB = 10**9


def a_plan(available_gb, **changes):
    values = {
        "available_bytes": int(available_gb * GB),
        "total_bytes": 32 * GB,
        "used_share": 0.3,
        "ranks": 1,
        "batch_bytes": 20 << 20,
        "batch_size": 32,
        "workers": 4,
        "worker_bytes": 0,
        "accelerators": 1,
    }
    return plan_memory(**{**values, **changes})


def test_tiers():
    assert a_plan(7.9).tier == "below 8 GB"
    assert a_plan(8).tier == "8 to 13 GB"
    assert a_plan(12.9).tier == "8 to 13 GB"
    assert a_plan(13).tier == "above 13 GB"
    budgets = [a_plan(size).budget_bytes for size in (2, 7.9, 8, 13, 64)]
    assert budgets == sorted(budgets)
    assert not a_plan(7.9).pin_memory
    assert a_plan(8).pin_memory
    assert not a_plan(64, accelerators=0).pin_memory
    sizes = [a_plan(size).evaluation_batch_size for size in (4, 10, 64)]
    assert sizes == [32, 64, 128]


@pytest.mark.parametrize(
    ("used", "verdict"), [(0.5, "fits"), (0.94, "fits"), (0.951, "warns"), (0.981, "refuses")]
)
def test_verdicts(used, verdict):
    assert a_plan(14, used_share=used, batch_bytes=1).verdict == verdict


def test_worker_processes_count_for_each_rank():
    small, large = a_plan(14), a_plan(14, worker_bytes=GB, ranks=4)
    assert large.needed_bytes == small.needed_bytes + 4 * GB
    assert large.share == pytest.approx(0.3 + 4 * large.needed_bytes / (32 * GB))


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**10),
    st.integers(1, 4096),
    st.integers(0, 64),
)
def test_batches_in_flight_fit_the_budget(available, batch, size, workers):
    plan = a_plan(0, available_bytes=available, batch_bytes=batch, batch_size=size, workers=workers)
    assert plan.depth >= 1
    assert plan.depth == 1 or plan.depth * batch <= plan.budget_bytes
    assert plan.evaluation_batch_size >= size
    assert plan.evaluation_batch_size % size == 0


def test_nothing_is_measured_where_memory_is_full(tmp_path, monkeypatch):
    seen = Watch()
    seen.begin("something")
    assert seen.moments[-1].doing == "something"
    rooted(monkeypatch, host(tmp_path, total=1000, available=15))
    with pytest.raises(MemoryRefused, match=r"98\.5% of the memory is in use"):
        seen.see()
