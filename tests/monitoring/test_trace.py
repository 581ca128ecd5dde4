"""Traces of a run: valid, ordered, without overlaps, on the clock of torch.profiler's."""

import dataclasses
import gc
import gzip
import json
import os
import time

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import fastload
from fastload.columns import Rows
from fastload.monitoring.record import Window
from fastload.monitoring.trace import Recent, Span, write_trace

from .monitored import finding, steps, window
from .traces import assert_apart, ours


def test_steps_waits_windows_and_findings(tmp_path):
    windows = [window(number, nan_s=float("nan")) for number in range(5)]
    spans = [
        Span("regions", "checkpoint", 1000.31, 1000.33),
        Span("garbage collection", "generation 2", 1000.215, 1000.22),
        Span("regions", "evaluation", 1000.11, 1000.12),
        Span("regions", "overlapping", 1000.115, 1000.13),
    ]
    path = tmp_path / "trace.json"
    write_trace(path, windows, spans, [finding()], pid=7)
    trace = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert {event["pid"] for event in trace["traceEvents"]} == {7}
    tracks = ours(trace)
    assert {name: len(found) for name, found in tracks.items()} == {
        "steps": 100,
        "windows": 4,
        "regions": 3,
        "garbage collection": 1,
    }
    for spans_of_track in tracks.values():
        assert_apart(spans_of_track)
    assert [event["name"] for event in tracks["steps"][:4]] == ["wait", "own", "wait", "own"]
    np.testing.assert_allclose([e["dur"] for e in tracks["steps"][::2]], 5000, atol=1)
    np.testing.assert_allclose([e["dur"] for e in tracks["steps"][1::2]], 15000, atol=1)
    assert [event["args"]["step"] for event in tracks["steps"][::2]] == list(range(50))
    base_s = trace["baseTimeNanoseconds"] / 1e9
    begin_s = 1_800_000_000 - base_s  # of the monotonic clock's 1000 s
    assert tracks["steps"][0]["ts"] / 1e6 == pytest.approx(begin_s, abs=1e-5)
    assert [event["name"] for event in tracks["regions"]] == [
        "evaluation",
        "overlapping",
        "checkpoint",
    ]
    assert tracks["regions"][-1]["ts"] / 1e6 == pytest.approx(begin_s + 0.31, abs=1e-5)
    (mark,) = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    assert mark["name"] == finding().what
    assert mark["ts"] / 1e6 == pytest.approx(begin_s + 0.6, abs=1e-5)
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {
        f"fastload {name}" for name in windows[0].scalars if name != "nan_s"
    }


def test_nothing_to_trace(tmp_path):
    with pytest.raises(ValueError, match="no window has ended"):
        write_trace(tmp_path / "trace.json", [])
    write_trace(tmp_path / "trace.json", [window(count=0)])
    (tmp_path / "torch.json").write_text("[]")
    with pytest.raises(ValueError, match=r"torch.json is no trace of torch.profiler.*baseTime"):
        write_trace(tmp_path / "trace.json", [window()], torch_trace=tmp_path / "torch.json")


@pytest.mark.parametrize("name", ["torch.json", "torch.json.gz"])
def test_a_trace_of_torch_profiler_has_the_same_clock(name, tmp_path):
    begin_s, unix_s = time.monotonic(), time.time()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        time.sleep(0.05)
        torch.ones(8).sum()
        time.sleep(0.05)
    end_s = time.monotonic()
    profiled.export_chrome_trace(str(tmp_path / name))
    one = steps(0, 1, begin_s, wait_s=[0.0], own_s=[end_s - begin_s])
    shown = Window(0, unix_s + end_s - begin_s, end_s, 0, {}, one)
    path = tmp_path / "both.json.gz"
    write_trace(path, [shown], torch_trace=tmp_path / name)
    trace = json.loads(gzip.decompress(path.read_bytes()))
    step = ours(trace)["steps"][1]
    assert step["pid"] == os.getpid()
    theirs = [event for event in trace["traceEvents"] if event["name"] == "aten::sum"]
    assert theirs
    assert {event["pid"] for event in theirs} == {os.getpid()}
    for event in theirs:
        assert step["ts"] < event["ts"] < event["ts"] + event["dur"] < step["ts"] + step["dur"]


@pytest.mark.parametrize("content", [b"{", b"[]", gzip.compress(b"{}" * 1000)[:20]])
def test_a_trace_that_is_none_of_torchs_is_named(content, tmp_path):
    (tmp_path / "torch.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"torch\.json is no trace of torch\.profiler"):
        write_trace(tmp_path / "both.json", [window(0)], torch_trace=tmp_path / "torch.json")


def test_the_clocks_of_a_window_are_read_together():
    windows = []
    loader = fastload.Loader(fastload.Dataset(Rows(torch.zeros(20, 2))), 10)
    with fastload.monitor(loader, lambda window, _: windows.append(window)):
        list(loader)
    least_s = time.time() - time.monotonic()  # the second clock is read later
    most_s = -(time.monotonic() - time.time())
    for each in windows:
        assert least_s - 1e-3 <= each.time_s - each.monotonic_s <= most_s + 1e-3
    assert windows


def test_the_latest_windows_are_kept():
    recent = Recent()
    added = [window(number, count=1000, rank=3) for number in range(100)]
    for each in added:
        recent.add(each)
    kept = recent.windows()
    assert [each.step for each in kept] == [number * 1000 + 999 for number in range(35, 100)]
    for one, other in zip(kept, added[35:], strict=True):
        assert dataclasses.replace(one, steps=None) == dataclasses.replace(other, steps=None)
        for field in dataclasses.fields(one.steps):
            column, expected = (getattr(each.steps, field.name) for each in (one, other))
            assert column.dtype == expected.dtype
            np.testing.assert_array_equal(column, expected)
    recent.add(window(0, count=100_000))
    assert [len(each.steps) for each in recent.windows()] == [1 << 16]
    for _ in range(5000):
        recent.add(window(0, count=0))
    assert len(recent.windows()) == 4096


def test_a_monitor_writes_its_trace(tmp_path):
    loader = fastload.Loader(fastload.Dataset(Rows(torch.zeros(200, 2))), 10, num_workers=1)
    with fastload.monitor(loader) as monitor:
        with pytest.raises(ValueError, match="no window has ended"):
            monitor.trace(tmp_path / "trace.json")
        for number, _ in enumerate(loader):
            with monitor.region("evaluation" if number % 2 else "checkpoint"):
                time.sleep(0.001)
            if number == 7:
                gc.collect()
    monitor.trace(tmp_path / "trace.json")
    tracks = ours(json.loads((tmp_path / "trace.json").read_text()))
    for spans in tracks.values():
        assert_apart(spans)
    assert len(tracks["steps"]) == 40
    names = [span["name"] for span in tracks["regions"]]
    assert names == ["checkpoint", "evaluation"] * 10
    assert "generation 2" in {span["name"] for span in tracks["garbage collection"]}
    for step, region in zip(tracks["steps"][1::2], tracks["regions"], strict=True):
        assert step["ts"] <= region["ts"] < step["ts"] + step["dur"]
