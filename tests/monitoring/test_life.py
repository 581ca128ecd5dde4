"""The life of a monitor: as an argument, in copies, across forks, and how it ends."""

import copy
import gc
import json
import os
import pickle
import socket
import threading
import time
import weakref

import pytest
import torch

import fastload
from fastload.columns import Rows
from fastload.monitoring import Finding
from fastload.monitoring import run as monitor_run
from tests.shared import interpreter
from tests.shared.processes import OUR_PROCESSES

from .lanes import BATCH, BATCHES, LANES, ROWS, Kept

pytestmark = OUR_PROCESSES


def rows(**arguments):
    return fastload.Loader(Rows(torch.arange(12)), batch_size=4, **arguments)


def threads():
    return [each for each in threading.enumerate() if each.name == "fastload monitor"]


def wait_until(is_true):
    end_s = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_loader_makes_its_monitor():
    kept = Kept()
    loader = rows(monitor=kept)
    assert isinstance(loader.monitor, fastload.Monitor)
    assert loader.monitor.scalars() == {}
    assert loader.monitor.findings() == []
    assert loader.monitor.summary() == "no steps yet"
    assert threads() == []
    list(loader)
    loader.monitor.close()
    assert kept.column("number").tolist() == [0, 1, 2]
    assert rows().monitor is None
    assert rows(monitor=[]).monitor.scalars() == {}


def test_what_comes_to_no_sink_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match="cannot write to 5"):
        rows(monitor=5)
    with pytest.raises(ValueError, match="names no sink"):
        fastload.monitor(rows(), "run.csv")
    with pytest.raises(
        ValueError, match="every_s should be a positive number of seconds, but got 0"
    ):
        fastload.monitor(rows(), every_s=0)
    with pytest.raises(
        ValueError, match="stall_s should be a positive number of seconds, but got 'x'"
    ):
        fastload.Monitor(stall_s="x")


def test_a_loader_has_one_monitor_at_a_time():
    loader = rows()
    first = fastload.monitor(loader)
    with pytest.raises(ValueError, match=r"use loader\.monitor, or close it first"):
        fastload.monitor(loader)
    first.close()
    assert first.is_closed
    with fastload.monitor(loader) as second:
        assert loader.monitor is second
        list(loader)
    assert second.scalars()["steps"] == 3


def test_a_rebuilt_loader_goes_on_with_the_monitor():
    kept = Kept()
    loader = rows(monitor=kept)
    rebuilt = fastload.Loader.from_torch(loader, batch_size=3)
    assert rebuilt.monitor is loader.monitor
    list(rebuilt)
    rebuilt.monitor.close()
    assert kept.column("rows").tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))]
)
def test_a_copy_has_no_monitor(copied):
    with fastload.monitor(rows()) as monitor:
        loader = rows(monitor=monitor)
        list(loader)
        other = copied(loader)
        assert other.monitor is None
        list(other)
        assert monitor._run.recorder.count == 3


def test_closing_twice_is_safe_and_ends_the_thread():
    loader = rows()
    monitor = fastload.monitor(loader)
    list(loader)
    assert len(threads()) == 1
    monitor.close()
    monitor.close()
    assert threads() == []
    assert len(list(loader)) == 3
    assert threads() == []


def test_a_monitor_that_recorded_nothing_closes_its_sinks(tmp_path):
    path = tmp_path / "run.jsonl"
    with fastload.monitor(rows(), path):
        pass
    assert path.read_text() == ""


class Own(fastload.Loader):
    def _get_iterator(self):
        return iter([1, 2, 3])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_refused_loader_keeps_no_port_and_makes_no_file(tmp_path):
    to = [f"prometheus:{free_port()}", str(tmp_path / "run.jsonl")]
    with pytest.raises(ValueError, match="mutually exclusive"):
        rows(shuffle=True, sampler=range(12), monitor=to)
    assert list(tmp_path.iterdir()) == []
    rows(monitor=to).monitor.close()


def test_a_monitor_that_is_dropped_before_an_iteration_closes_its_sinks():
    to = f"prometheus:{free_port()}"
    given = fastload.Monitor(to)
    del given
    gc.collect()
    fastload.Monitor(to).close()


def test_a_list_with_a_target_that_is_refused_closes_the_others():
    to, own = f"prometheus:{free_port()}", Kept()
    with pytest.raises(ValueError, match="names no sink"):
        fastload.Monitor([own, to, "bogus"])
    fastload.Monitor(to).close()


def test_an_iterator_that_is_not_torchs_is_left_alone(caplog):
    loader = Own(Rows(torch.arange(12)))
    with fastload.monitor(loader):
        for _ in range(2):
            assert list(loader) == [1, 2, 3]
    assert caplog.text.count("iter(loader) returned a list_iterator") == 1


def test_what_is_forgotten_ends_with_its_thread():
    kept = Kept()
    loader = rows(monitor=kept)
    list(loader)
    alive = weakref.ref(loader), weakref.ref(loader.monitor)
    (thread,) = threads()
    del loader
    gc.collect()
    assert [each() for each in alive] == [None, None]
    wait_until(lambda: not thread.is_alive())
    assert kept.windows[-1].step == 2  # the last window is made all the same


def test_a_step_whose_loop_was_left_is_not_open():
    loader = rows()
    with fastload.monitor(loader, every_s=0.02) as monitor:
        for _ in loader:
            wait_until(lambda: "open_step_s" in monitor.scalars())
            break
        wait_until(lambda: monitor.scalars() and "open_step_s" not in monitor.scalars())


def test_an_error_in_the_monitor_ends_no_training(monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(monitor_run, "findings", broken)
    loader = rows()
    with fastload.monitor(loader, every_s=0.01):
        iterator = iter(loader)
        wait_until(lambda: not threads())
        assert len(list(iterator)) == 3
        assert len(list(loader)) == 3
    assert caplog.text.count("the monitor has failed and records nothing more") == 1


def test_an_error_at_the_start_of_an_epoch_ends_no_training(monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError

    kept, loader = Kept(), rows()
    with fastload.monitor(loader, kept) as monitor:
        list(loader)
        monkeypatch.setattr(monitor_run, "sizes_of", broken)
        assert len(list(loader)) == 3
        assert monitor.is_closed
        wait_until(lambda: not threads())
        assert len(list(loader)) == 3
    assert kept.column("number").tolist() == [0, 1, 2]
    assert caplog.text.count("the monitor has failed and records nothing more") == 1


def test_a_sink_that_fails_leaves_the_others(caplog):
    def broken(*_):
        raise ZeroDivisionError

    kept, loader = Kept(), rows()
    with fastload.monitor(loader, [broken, kept], every_s=0.01):
        for _ in range(5):
            list(loader)
            time.sleep(0.05)
    assert kept.column("number").tolist() == list(range(15))
    assert "writes no more to" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_records_nothing():
    kept = Kept()
    loader = fastload.Loader(list(range(12)), num_workers=0, monitor=kept)
    list(loader)
    recorder = loader.monitor._run.recorder
    child = os.fork()
    if not child:
        is_plain = False
        try:
            before = recorder.count
            is_plain = len(list(loader)) == 12 and recorder.count == before
            loader.monitor.close()
        finally:
            os._exit(0 if is_plain else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    loader.monitor.close()
    assert len(kept.column("number")) == 12


EXIT = """
import sys, torch, fastload
from fastload.columns import Rows
loader = fastload.Loader(Rows(torch.arange(12)), batch_size=4, monitor=sys.argv[1])
list(loader)
{end}
"""


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(3)", "batches = iter(loader); next(batches)"]
)
def test_the_end_of_the_program_closes_the_monitor(tmp_path, end):
    path = tmp_path / "run.jsonl"
    ended = interpreter.run("-c", EXIT.format(end=end), path)
    assert ended.returncode == (3 if "SystemExit" in end else 0)
    assert ended.stderr == ""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines if line["kind"] != "finding"] == [
        "start",
        "window",
        "end",
    ]
    assert lines[0]["loader"]["batch_size"] == 4
    assert lines[1]["steps"]["rows"] == [4, 4, 4]
    assert "3 steps" in lines[-1]["summary"]


def test_a_program_without_a_monitor_loads_neither_detectors_nor_sinks():
    code = "import sys, fastload; print(*(name for name in sys.modules if 'monitoring' in name))"
    loaded = interpreter.run("-c", code).stdout.split()
    names = ["fastload.monitoring", "fastload.monitoring.monitor", "fastload.monitoring.record"]
    assert sorted(loaded) == names


def test_windows_follow_each_other_without_a_gap():
    kept, epochs = Kept(), 0
    loader = fastload.Loader(LANES["native"][0](), batch_size=BATCH)
    end_s = time.monotonic() + 20
    with fastload.monitor(loader, kept, every_s=0.02):
        while len(kept.windows) < 4:
            assert time.monotonic() < end_s
            epochs += 1
            for _ in loader:
                time.sleep(0.002)
    ends = [window.monotonic_s for window in kept.windows]
    assert ends == sorted(ends)
    assert kept.column("number").tolist() == list(range(epochs * BATCHES))
    assert kept.column("rows").sum() == epochs * ROWS
    assert [window.step for window in kept.windows] == sorted(
        window.step for window in kept.windows
    )
    for window in kept.windows:
        if len(window.steps):
            assert window.step == window.steps.number[-1]
            assert window.steps.end_s[-1] <= window.monotonic_s


def test_each_finding_is_logged_once(monkeypatch, caplog):
    finding = Finding("stall", "it stalls", "5 s", 3, 1.0, 0.1, "Look.", "own code")
    other = Finding("stall", "it waits", "5 s", 3, 1.0, 0.1, "Look.", "own code", number=1)
    monkeypatch.setattr(monitor_run, "findings", lambda *_: [finding, other])
    loader = rows()
    with fastload.monitor(loader, every_s=0.01) as monitor:
        for _ in range(5):
            list(loader)
            time.sleep(0.02)
    assert caplog.messages.count("it stalls (5 s). Look.") == 1
    assert caplog.messages.count("it waits (5 s). Look.") == 1
    assert monitor.findings() == [finding, other]
    assert "it stalls (5 s). Look." in monitor.summary()
