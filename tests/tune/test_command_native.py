"""`python -m fastload.tune` on what native threads load: stages, threads, depth, ranks."""

import os

import pytest

from tests.shared.photographs import write_photographs

from .command import TAKES_TIME, found, write_targets

pytestmark = TAKES_TIME


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("native")
    write_targets(folder)
    (folder / "photographs").mkdir()
    write_photographs(folder / "photographs", 60)
    return folder


@pytest.fixture(scope="module")
def account(folder):
    return found(folder, "photographs", "--batch-size", "10", "--step-ms", "20", seconds=4)


def test_stages_are_told(account):
    stages = {row["name"]: row for row in account["stages"]}
    assert {"read", "decode", "transform", "all of loading"} <= stages.keys()
    for row in stages.values():
        assert row["ms"] > 0
        assert 0 <= row["readiness"] <= 1
        assert row["verdict"]


def test_rates_are_fitted(account):
    whole = account["curves"][0]
    assert whole["name"] == "all of loading"
    assert [point["workers"] for point in whole["points"]][:2] == [1, 2]
    assert all(point["rate"] > 0 for point in whole["points"])
    assert whole["law"]["rate"] > 0
    assert whole["law"]["contention"] >= 0
    assert whole["law"]["coherence"] >= 0
    assert whole["knee"] >= 1
    assert {"decode", "transform"} <= {curve["name"] for curve in account["curves"]}


def test_three_runs_separate_causes(account):
    storage = account["storage"]
    assert storage["files"] > 0
    assert storage["file_bytes"] > 0
    assert storage["bytes_per_s"] > 0
    assert min(storage["cached"], storage["warm"], storage["cold"]) > 0


def test_the_step_is_what_is_wanted(account):
    demand = account["demand"]
    assert demand["step_ms"] >= 20
    assert demand["rate"] == pytest.approx(10_000 / demand["step_ms"])


def test_settings_were_tried_beside_their_neighbours(account):
    plan = account["plan"]
    assert plan["lane"] == "native"
    tried = [run["workers"] for run in plan["tried"]]
    assert plan["workers"] in tried
    assert len(tried) > 1
    assert plan["depth"] in [run["depth"] for run in account["depths"]]
    assert plan["limit"] in plan["limits"]
    assert account["advice"].startswith("The training can consume ")


def test_memory_over_time_is_told(account):
    moments = account["moments"]
    assert len(moments) > 2
    assert [each["at_s"] for each in moments] == sorted(each["at_s"] for each in moments)
    assert all(each["used_bytes"] > 10 << 20 for each in moments)


def test_ranks_share_the_machine(folder):
    alone = found(folder, "targets:tensors", seconds=1)
    shared = found(folder, "targets:tensors", "--ranks", "2", seconds=1)
    assert shared["host"]["ranks"] == 2
    assert shared["host"]["cores"] == alone["host"]["cores"] / 2
    assert shared["host"]["host_cores"] == alone["host"]["host_cores"]
    assert shared["host"]["host_cores"] <= len(os.sched_getaffinity(0))
    assert "for each of 2 ranks" in shared["advice"]
