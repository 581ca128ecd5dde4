"""What users pass as `to`, and the records that files and functions get."""

import json
import logging
import math
from collections import Counter

import numpy as np
import pytest

from fastload.monitoring.sinks import Sink, Writer, resolve
from fastload.monitoring.sinks.jsonl import JsonLines
from tests.monitoring.monitored import finding, steps, window


def lines(path):
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("to", "error", "message"),
    [
        (7, TypeError, r"cannot write to 7 \(int\).*prometheus:PORT"),
        ([None], TypeError, "cannot write to None"),
        ("run.json", ValueError, "'run.json' names no sink"),
        ("prometheus:", ValueError, "names no port: write to='prometheus:9400'"),
        ("prometheus:70000", ValueError, "names no port"),
        ("prometheus:http", ValueError, "names no port"),
        ("missing/run.jsonl", FileNotFoundError, "missing/run.jsonl"),
    ],
)
def test_what_names_no_sink_is_refused(to, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        resolve(to)


def test_none_one_and_several(tmp_path):
    assert resolve(None) == []
    own = Sink()
    assert resolve(own) == [own]
    made = resolve([tmp_path / "run.jsonl", print])
    assert [type(sink).__name__ for sink in made] == ["JsonLines", "Function"]
    made[0].close()


def test_a_function_gets_windows_and_findings():
    calls = []
    sink = resolve(lambda *arguments: calls.append(arguments))[0]
    shown, found = window(), (finding(),)
    sink.write(shown, found)
    assert calls == [(shown, found)]


def test_a_file_has_the_record(tmp_path):
    path = tmp_path / "run.jsonl"
    writer = Writer(resolve(path), {"num_workers": 2, "dataset": object})
    changed = finding(evidence="13 stalls")
    for number, found in enumerate([[], [finding()], [finding()], [changed], []]):
        writer.put(window(number), found)
    writer.close(timeout_s=30, summary="one finding")
    found = lines(path)
    assert [line["kind"] for line in found] == [
        "start",
        "window",
        "finding",
        "window",
        "window",
        "finding",
        "window",
        "window",
        "end",
    ]
    start, first, end = found[0], found[1], found[-1]
    assert start["version"] == 1
    assert start["loader"] == {"num_workers": 2, "dataset": "<class 'object'>"}
    assert {"time_s", "pid", "rank", "host"} <= start.keys()
    want = window()
    assert (first["step"], first["time_s"], first["rank"]) == (9, want.time_s, 0)
    assert first["scalars"] == want.scalars
    for name, column in first["steps"].items():
        np.testing.assert_allclose(column, getattr(want.steps, name), atol=1e-7)
    assert [line["findings"] for line in found if line["kind"] == "window"] == [
        [],
        [0],
        [0],
        [0],
        [],
    ]
    assert (found[2]["finding"], found[2]["number"]) == ("period", 0)
    assert (found[5]["evidence"], found[5]["number"]) == ("13 stalls", 0)
    assert end["summary"] == "one finding"


def test_a_file_goes_on_where_one_was_torn(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"kind": "start"}\n{"kind": "wind')
    writer = Writer(resolve(path))
    writer.close(timeout_s=30)
    _, torn, *rest = path.read_text().splitlines()
    assert torn == '{"kind": "wind'
    assert [json.loads(line)["kind"] for line in rest] == ["start", "end"]


def test_ranks_have_files_of_their_own(tmp_path):
    made = [resolve(tmp_path / "run.jsonl", rank)[0] for rank in range(3)]
    for sink in made:
        sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "run.jsonl",
        "run.rank1.jsonl",
        "run.rank2.jsonl",
    ]
    assert {path.stat().st_size for path in tmp_path.iterdir()} == {0}  # no run was begun


def test_two_loaders_of_a_process_have_files_of_their_own(tmp_path):
    path = tmp_path / "run.jsonl"
    train, validation = (Writer(resolve(path), {}) for _ in range(2))
    for number in range(3):
        train.put(window(number), [])
        validation.put(window(10 + number), [])
    train.close()
    again = Writer(resolve(path), {})
    again.put(window(20), [])
    for each in again, validation:
        each.close()

    found = {each.name: lines(each) for each in tmp_path.iterdir()}
    assert {
        name: [line["step"] for line in of if line["kind"] == "window"]
        for name, of in found.items()
    } == {
        "run.jsonl": [9, 19, 29, 209],
        "run.2.jsonl": [109, 119, 129],
    }


def test_numbers_that_json_has_not_are_null(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    sink.start({"timeout": math.inf})
    odd = {"nan_s": math.nan, "inf_s": -math.inf, 'odd "label"\n\u2028é_s': 1.0}
    sink.write(window(**odd), [finding(cost_s=math.nan)])
    sink.close()
    start, told, first, _ = lines(path)
    assert start["loader"] == {"timeout": None}
    assert first["scalars"]["nan_s"] is None
    assert first["scalars"]["inf_s"] is None
    assert first["scalars"]['odd "label"\n\u2028é_s'] == 1.0
    assert told["cost_s"] is None


def test_of_many_steps_the_longest_are_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    count = 20_000
    slow = np.full(count, 1e-4)
    slow[1234] = 3.0
    shown = window(count=1)
    many = steps(0, count, 0.0, own_s=slow)
    sink = JsonLines(path)
    sink.write(type(shown)(count - 1, 0.0, 0.0, 0, {}, many), [])
    sink.write(window(count=0), [])
    sink.close()
    first, empty = lines(path)
    numbers = first["steps"]["number"]
    assert 200 <= len(numbers) <= 256
    assert numbers == sorted(set(numbers))
    assert Counter(first["steps"]["own_s"])[3.0] == 1
    assert 1234 in numbers
    assert empty["steps"]["number"] == []
    assert path.stat().st_size < 64_000


def test_a_full_disk_ends_the_sink(caplog):
    writer = Writer([JsonLines("/dev/full")])
    with caplog.at_level(logging.WARNING, "fastload"):
        for number in range(5):
            writer.put(window(number), [])
        writer.close(timeout_s=30)
    (record,) = caplog.records
    assert "/dev/full" in record.getMessage()
    assert "No space left" in record.getMessage()
