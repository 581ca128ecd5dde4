"""`-o fastload.toml`: what is written, and a loader that starts from it."""

import logging

import torch
from torch.utils.data import TensorDataset

import fastload

from .command import TAKES_TIME, found, write_targets

pytestmark = TAKES_TIME


def test_a_loader_starts_from_what_was_found(tmp_path, caplog):
    write_targets(tmp_path)
    account = found(tmp_path, "targets:tensors", "-o", "fastload.toml", "--step-ms", "5")
    file = tmp_path / "fastload.toml"
    profile = fastload.Profile.load(file)
    assert profile.lane == account["plan"]["lane"] == "native"
    assert profile.workers == account["plan"]["workers"]
    assert profile.depth == account["plan"]["depth"]
    assert profile.memory_budget == account["memory"]["budget_bytes"]
    assert profile.measured["advice"] == account["advice"]
    assert 2 < profile.measured["step_ms"] < 500
    dataset = TensorDataset(torch.rand(4000, 8), torch.arange(4000))
    with caplog.at_level(logging.WARNING, "fastload"):
        loader = fastload.Loader(dataset, 32, tune=file)
        assert len(list(loader)) == 125
    assert caplog.records == []
    assert int(loader.num_workers) == profile.workers


def test_a_profile_of_python_names_its_lane(tmp_path):
    write_targets(tmp_path)
    account = found(tmp_path, "targets:slow", "--step-ms", "40", "-o", "mine.toml", seconds=5)
    profile = fastload.Profile.load(tmp_path / "mine.toml")
    assert profile.lane == account["plan"]["lane"]
    assert profile.workers == account["plan"]["workers"]
    assert profile.data is not None
    assert profile.data.kind.endswith("Slow")
