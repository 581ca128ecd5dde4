"""The writer of a monitor's sinks: bounded, never waited for, silent in forked children."""

import json
import logging
import os
import signal
import subprocess
import textwrap
import threading
import time

import pytest

from fastload.monitoring.sinks import Sink, Writer, resolve
from fastload.monitoring.sinks.jsonl import JsonLines
from tests.monitoring.monitored import finding, until, window
from tests.shared import interpreter


class Noted(Sink):
    """Notes what it is called with; waits for `gate` in each call of `write`."""

    def __init__(self):
        self.name = "noted"
        self.started, self.steps, self.findings, self.closed = [], [], [], []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def start(self, settings):
        self.started.append(settings)

    def write(self, window, findings):
        self.entered.set()
        self.gate.wait()
        self.steps.append(window.step)
        self.findings.append(findings)

    def close(self, summary=""):
        self.closed.append(summary)


def test_windows_arrive_in_order_between_start_and_close():
    sink = Noted()
    writer = Writer([sink], {"num_workers": 2})
    for number in range(20):
        writer.put(window(number), [finding()] * (number % 2))
    writer.close(timeout_s=30, summary="no drift")
    assert sink.started == [{"num_workers": 2}]
    assert sink.steps == [10 * number + 9 for number in range(20)]
    assert [len(each) for each in sink.findings] == [0, 1] * 10
    assert sink.closed == ["no drift"]
    writer.close()
    assert sink.closed == ["no drift"]
    assert writer.dropped == 0


def test_a_sink_that_blocks_costs_the_oldest_windows():
    sink = Noted()
    sink.gate.clear()
    writer = Writer([sink])
    writer.put(window(0), [])
    assert sink.entered.wait(30)
    for number in range(1, 101):
        writer.put(window(number), [])
    assert writer.dropped == 100 - 64
    sink.gate.set()
    writer.close(timeout_s=30)
    assert sink.steps == [9] + [10 * number + 9 for number in range(37, 101)]


def test_closing_gives_up_on_a_sink_that_blocks(caplog):
    sink = Noted()
    sink.name = "a slow one"
    sink.gate.clear()
    writer = Writer([sink])
    for number in range(3):
        writer.put(window(number), [])
    assert sink.entered.wait(30)
    begin = time.monotonic()
    with caplog.at_level(logging.WARNING, "fastload"):
        writer.close(timeout_s=0.2)
    assert 0.2 <= time.monotonic() - begin < 10
    assert writer.dropped == 2
    (record,) = caplog.records
    assert "a slow one took longer than 0.2 s" in record.getMessage()
    writer.put(window(4), [])
    assert writer.dropped == 3
    sink.gate.set()


@pytest.mark.parametrize(
    "error", [ValueError("full"), SystemExit(3)], ids=lambda e: type(e).__name__
)
def test_three_errors_in_a_row_end_a_sink_with_one_line(error, caplog):
    calls = []

    def failing(window, findings):
        calls.append(window.step)
        raise error

    sink = Noted()
    writer = Writer([*resolve(failing), sink])
    with caplog.at_level(logging.WARNING, "fastload"):
        for number in range(6):
            writer.put(window(number), [])
        writer.close(timeout_s=30)
    assert calls == [9, 19, 29]
    assert len(sink.steps) == 6
    assert writer.dropped == 6
    (record,) = caplog.records
    message = record.getMessage()
    assert "failing" in message
    assert f"{type(error).__name__}: {error}" in message


def test_a_sink_that_blocks_holds_up_no_file_and_no_endpoint(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = Noted()
    sink.gate.clear()
    (endpoint,) = resolve("prometheus:0")
    writer = Writer([sink, *resolve(path), endpoint])
    for number in range(3):
        writer.put(window(number), [])
    until(lambda: path.read_text().count('"window"') == 3)
    until(lambda: endpoint._server.newest and endpoint._server.newest[0].step == 29)
    writer.close(timeout_s=0.2, summary="done")
    until(lambda: '"summary": "done"' in path.read_text())
    sink.gate.set()


def test_two_errors_in_a_row_end_nothing(caplog):
    calls = []

    def flaky(window, findings):
        calls.append(window.step)
        if len(calls) % 3:
            raise OSError

    writer = Writer(resolve(flaky))
    for number in range(9):
        writer.put(window(number), [])
    writer.close(timeout_s=30)
    assert len(calls) == 9
    assert caplog.records == []


def test_a_sink_may_close_the_writer():
    """As a user's function may that ends the training."""
    steps = []
    holder = []

    def ending(window, findings):
        steps.append(window.step)
        holder[0].close()

    holder.append(Writer(resolve(ending)))
    holder[0].put(window(0), [])
    until(lambda: steps == [9])


def test_a_writer_that_is_collected_ends_its_thread():
    sink = Noted()
    writer = Writer([sink])
    writer.put(window(0), [])
    del writer
    until(lambda: sink.closed == [""])
    assert sink.steps == [9]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_writes_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = Noted()
    writer = Writer([JsonLines(path), sink, *resolve("prometheus:0")])
    writer.put(window(0), [])
    until(lambda: sink.steps == [9])
    held, released = threading.Event(), threading.Event()

    def hold():
        with writer._queues[0]._changed:
            held.set()
            released.wait()

    threading.Thread(target=hold).start()
    held.wait()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)  # the lock will never be released here
        writer.put(window(1), [])
        writer.close()
        os._exit(40 + len(sink.steps))
    released.set()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 41
    writer.put(window(2), [])
    writer.close(timeout_s=30)
    kinds = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in kinds] == ["start", "window", "window", "end"]
    assert [line["step"] for line in kinds[1:3]] == [9, 29]


EXITING = """
    import json, os, sys, threading, time
    sys.path.insert(0, {tests!r})
    from fastload.monitoring.sinks import Writer, resolve
    from fastload.monitoring.record import Steps, Window
    import numpy as np

    empty = Steps(*[np.zeros(0)] * 9)
    window = Window(7, 0.0, 0.0, 0, {{}}, empty)
    entered = threading.Event()

    def blocks(window, findings):
        entered.set()
        time.sleep(600)

    writer = Writer(resolve({to}))
    writer.put(window, [])
    {more}
    print(time.time(), flush=True)
"""


def exiting(tmp_path, to: str, more: str = "") -> tuple[subprocess.CompletedProcess[str], float]:
    """Runs a program that ends without closing; returns how long its exit took."""
    source = textwrap.dedent(EXITING).format(to=to, more=more, tests=str(tmp_path))
    done = interpreter.run("-c", source, folder=tmp_path)
    return done, time.time() - float(done.stdout.split()[0])


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_program_that_ends_writes_the_rest(tmp_path):
    done, _ = exiting(tmp_path, "'run.jsonl'")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["start", "window", "end"]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_program_ends_beside_a_sink_that_blocks(tmp_path):
    done, took_s = exiting(tmp_path, "[blocks, 'prometheus:0']", "entered.wait()")
    assert done.returncode == 0, done.stderr
    assert took_s < 60  # of the 600 for which it blocks; two on an idle machine
