"""Recorded runs: the file read back, `python -m fastload.top`, `python -m fastload.report`."""

import dataclasses
import io
import json
import os
import re
import runpy
import shutil
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from rich.console import Console

from fastload import report, top
from fastload.monitoring.record import Steps
from fastload.monitoring.sinks.jsonl import JsonLines
from fastload.runs.figures import named, ordered, shown
from fastload.runs.file import RunFile, RunFileError, file_of
from fastload.units import duration
from tests.monitoring.monitored import finding, steps, window
from tests.shared import interpreter

FINDINGS = (
    finding(),
    finding("leak", what="memory grows by <100 B> per batch", cost_s=0.0, number=1),
)


def record(path, windows=20, rank=0, *, ended=True):
    """Writes a run of which the findings hold from the tenth window to the fifteenth."""
    sink = JsonLines(path, rank)
    sink.start({"num_workers": 2, "dataset": "Images"})
    for number in range(windows):
        found = FINDINGS if 10 <= number < 15 else ()
        shown = window(number, rank=rank, workers=2 + number // 10, samples_per_s=1000.0 + number)
        sink.write(shown, found)
    if ended:
        sink.close("No drift: the steps of the last hour took 0.1 % longer than the first.")
    else:
        sink._close()
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record(tmp_path_factory.mktemp("run") / "run.jsonl")


def test_what_was_written_is_read(run):
    found = RunFile(run)
    assert found.damaged == 0
    assert len(found.run.windows) == 20
    for number, each in enumerate(found.run.windows):
        want = window(number, workers=2 + number // 10, samples_per_s=1000.0 + number)
        assert (each.step, each.time_s, each.scalars) == (want.step, want.time_s, want.scalars)
        for name in Steps.__dataclass_fields__:
            column, expected = getattr(each.steps, name), getattr(want.steps, name)
            assert column.dtype == expected.dtype
            np.testing.assert_allclose(column, expected, atol=1e-7)
    assert list(found.run.findings.values()) == list(FINDINGS)
    assert found.run.standing == ()
    assert found.run.last_steps == {0: 149, 1: 149}
    assert found.run.end["summary"].startswith("No drift")
    assert found.run.start["loader"]["num_workers"] == 2


def test_a_run_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "run.jsonl"
    record(path, 2, ended=False)
    torn, path_text = '{"kind": "window", "st', path.read_text()
    path.write_text(path_text + torn)
    found = RunFile(path)
    assert len(found.run.windows) == 2
    assert not found.read()
    path.write_text(path_text)
    record(path, 3)  # appends a second run
    assert found.read()
    assert len(found.run.windows) == 3
    assert found.run.end is not None
    assert found.damaged == 0
    path.write_text("")
    record(path, 1)
    assert found.read()
    assert len(found.run.windows) == 1


def test_damaged_lines_are_counted(run, tmp_path):
    lines = run.read_text().splitlines()
    lines[3] = lines[3][:40]
    lines.insert(5, '{"kind": "window", "step": 3}')
    lines.insert(6, "[1, 2]")
    lines.insert(7, '{"kind": "of a later version"}')
    other = json.loads(lines[1])
    assert other["kind"] == "window"
    for wrong in ({"scalars": [1]}, {"step": None}, {"time_s": None}, {"rank": []}):
        lines.insert(8, json.dumps(other | wrong))
    lines.insert(12, "[" * 100_000)
    (tmp_path / "run.jsonl").write_text("\n".join([*lines, ""]))
    found = RunFile(tmp_path / "run.jsonl")
    assert found.damaged == 8
    assert len(found.run.windows) == 19


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("start", {"time_s": None}),
        ("start", {"time_s": 1e308}),
        ("start", {"pid": [], "rank": "x", "loader": "x"}),
        ("finding", {"advice": True}),
        ("finding", {"owner": 5.0}),
        ("window", {"findings": [{}]}),
        ("window", {"monotonic_s": 1e308}),
        ("steps", {"batch": [10**30] * 10}),
        ("steps", {"own_s": [1e308] * 10}),
    ],
)
def test_values_of_wrong_types_are_damage_and_no_traceback(run, tmp_path, kind, wrong):
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    place = next(
        place
        for place, line in enumerate(lines)
        if line["kind"] == ("window" if kind == "steps" else kind)
    )
    changed = lines[place]["steps"] if kind == "steps" else lines[place]
    changed.update(wrong)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert RunFile(path).damaged == 1
    assert top.main([str(path), "--once"]) == 0
    assert report.main([str(path)]) == 0
    assert report.main([str(path), "--trace", str(tmp_path / "trace.json")]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no record of a run"),
        ('{"kind": "start", "version": 9}\n', "has version 9 of the format; this fastload reads 1"),
    ],
)
def test_other_files_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(RunFileError, match=message):
        RunFile(path)
    assert top.main([str(path), "--once"]) == 2
    assert report.main([str(path)]) == 2
    assert capsys.readouterr().err.count(message) == 2


def test_a_process_is_found_by_its_open_file(tmp_path):
    other = (tmp_path / "other.jsonl").open("w")
    sink = JsonLines(tmp_path / "run.jsonl")
    sink.start({})
    assert file_of(os.getpid()) == str(tmp_path / "run.jsonl")
    sink.close()
    other.close()
    with pytest.raises(RunFileError, match=rf"process {os.getpid()} records no run.*run.jsonl"):
        file_of(os.getpid())
    with pytest.raises(RunFileError, match="No such file"):
        file_of(2**22 + 1)


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("wait_s", 0.0123, "12.3 ms"),
        ("wait_s", 0.0, "0 µs"),
        ("own_s", 83.0, "83 s"),
        ("samples_per_s", 1234.5, "1,234/s"),
        ("wait_share", 0.256, "25.6%"),
        ("rss_bytes", 1.5e9, "1.5 GB"),
        ("rss_bytes", 999.7e6, "1 GB"),
        ("heap_growth_bytes", -2e6, "-2 MB"),
        ("workers", 4.0, "4"),
        ("pressure", 0.1234, "0.123"),
        ("own_s", float("nan"), "-"),
    ],
)
def test_figures_have_units(name, value, want):
    assert shown(name, value) == want


def test_figures_have_names_and_an_order():
    assert shown("read_bytes_per_s", 2.5e6) == "2.5 MB/s"
    assert [named(name) for name in ("samples_per_s", "wait_s", "rss_bytes", "depth")] == [
        "samples per second",
        "wait",
        "RSS",
        "depth",
    ]
    assert ordered(["rss_bytes", "b", "own_s", "a", "wait_s"]) == [
        "wait_s",
        "own_s",
        "a",
        "b",
        "rss_bytes",
    ]
    assert [duration(each) for each in (125, 7300)] == ["2 min 5 s", "2 h 2 min"]
    assert [duration(each) for each in (172_799, 190_000)] == ["48 h 0 min", "2 days 5 h"]


def printed(path, width=100):
    output = io.StringIO()
    console = Console(file=output, width=width, color_system=None)
    console.print(top.frame(RunFile(path), 1_800_000_003.0, width))
    return output.getvalue()


def test_top_shows_figures_and_findings(run, tmp_path):
    text = printed(run)
    assert "step 200" in text
    assert "ended" in text
    (line,) = [line for line in text.splitlines() if line.startswith("samples per second")]
    assert "1,019/s" in line
    assert "▁▁▂▂▂▃▃▄▄▄▅▅▅▆▆▇▇▇██" in line
    assert "No findings." not in text
    assert "\n2 findings no longer held at the end.\n" in text
    assert "\n2 findings no longer hold.\n" in printed(record(tmp_path / "on.jsonl", ended=False))
    assert "\nNo findings.\n" in printed(record(tmp_path / "none.jsonl", 5))
    text = printed(record(tmp_path / "run.jsonl", 13, ended=False))
    assert "● every 30 steps the training pauses" in text
    assert "costs 40 ms per step, since step 29; 12 stalls" in text
    assert "Call search less often" in text
    assert text.index("every 30") < text.index("memory grows by <100 B>")
    assert "No findings." not in text
    for width in (80, 140):  # no figure takes two lines, and none is cut
        assert len(printed(run, width).splitlines()) == len(printed(run).splitlines())
        assert "…" not in printed(run, width)


def test_top_says_that_a_run_has_stopped(tmp_path):
    path = record(tmp_path / "run.jsonl", 3, ended=False)
    assert "no window for 2.4 s" in printed(path)
    text = path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {2**22 + 1}')
    path.write_text(text)
    assert "the process is gone and did not end the run" in printed(path)


def test_a_sparkline_has_a_character_per_value():
    assert top.sparkline([0, 7, float("nan"), 3.5]) == "▁█ ▅"
    assert top.sparkline([5.0, 5.001]) == "▅▅"
    assert top.sparkline([]) == ""


def test_the_commands(run, tmp_path):
    source = """
        import sys
        from fastload import report, top
        assert top.main([sys.argv[1], "--once"]) == 0
        assert top.main([sys.argv[1], "--every", "0.01"]) == 0
        assert report.main([sys.argv[1], "-o", "report.html"]) == 0
        assert report.main([sys.argv[1], "--trace", "trace.json"]) == 0
    """
    done = interpreter.run("-c", textwrap.dedent(source), run, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("samples per second") == 2
    assert done.stdout.endswith("report.html\ntrace.json\n")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "x"])
def test_an_interval_that_is_none_is_refused(every, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        top.main([str(run), f"--every={every}"])
    assert f"a positive number of seconds is needed, found '{every}'" in capsys.readouterr().err


def test_a_trace_of_torch_needs_the_trace_to_write(run, capsys):
    with pytest.raises(SystemExit, match="2"):
        report.main([str(run), "--torch-trace", "torch.json"])
    assert "--torch-trace needs --trace" in capsys.readouterr().err
    assert not run.with_suffix(".html").exists()


def test_top_follows_a_run_to_its_end(tmp_path, capsys):
    sink = JsonLines(tmp_path / "run.jsonl")
    sink.start({})

    def train():
        for number in range(5):
            time.sleep(0.05)
            sink.write(window(number), ())
        sink.close()

    training = threading.Thread(target=train)
    training.start()
    assert top.main([str(os.getpid()), "--every", "0.01"]) == 0
    training.join()
    shown = capsys.readouterr().out
    assert "no window yet" not in shown
    assert "step 50 " in shown
    assert "ended" in shown


def test_a_run_without_windows_has_no_report(tmp_path, capsys):
    for ended, why in (
        (True, "has no window: the run ended before its first step was recorded"),
        (False, "has no window yet: a monitor writes the first one after some seconds"),
    ):
        path = record(tmp_path / f"{ended}.jsonl", 0, ended=ended)
        assert report.main([str(path)]) == 2
        assert capsys.readouterr().err == f"{path} {why}\n"
        assert printed(path, 400) == f"{path} {why}\n"


def test_a_run_of_one_window_has_a_report(tmp_path):
    path = record(tmp_path / "run.jsonl", 1, ended=False)
    assert report.main([str(path)]) == 0
    assert "it still runs, or its process was killed" in path.with_suffix(".html").read_text()


def test_charts_have_units_that_fit_and_no_short_last_window(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    sink.start({})
    for number in range(6):
        sink.write(window(number, rss_bytes=5e9, wait_s=2e-5, own_s=3e-4), ())
    last = window(60, count=1)  # a tenth of the others
    end = {"monotonic_s": 1001.22, "time_s": 1_800_000_001.22}
    sink.write(dataclasses.replace(last, scalars={"own_s": 9.0, "rss_bytes": 4e9}, **end), ())
    sink.close()
    assert report.main([str(path)]) == 0
    html = path.with_suffix(".html").read_text()
    assert re.findall(r'text-anchor="start">([^<]*)<', html) == ["ms", "µs", "samples/s", "%", "GB"]
    assert "own 300 µs" in html
    assert "own 9 s" not in html


def test_the_report_counts_steps_that_the_file_left_out(tmp_path):
    path, count = tmp_path / "run.jsonl", 2000
    region_s = np.where(np.arange(count) % 100 == 99, 0.1, 0.0)
    own_s = 0.0015 + region_s
    columns = {"wait_s": np.full(count, 0.0005), "own_s": own_s, "region_s": region_s}
    shares = {"wait_share": 1 / 6, "gc_share": 0.0, "region_share": 2 / 6}
    sink = JsonLines(path)
    sink.start({})
    for number in range(2):
        shown = window(number, count, steps=float(count), **shares)
        first = steps(number * count, count, 1000.0, **columns)
        sink.write(dataclasses.replace(shown, steps=first), ())
    sink.close()
    assert report.main([str(path)]) == 0
    html = path.with_suffix(".html").read_text()
    text = re.sub(r"<[^>]*>|\s+", " ", html[html.index("Where the time went") :])
    text = re.sub(r" +", " ", text)
    assert "waiting for batches 16.7% 2 s" in text
    assert "named regions 33.3% 4 s" in text
    assert "Of 4,000 steps" in text


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_report_in_a_browser(run, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    second = record(tmp_path / "run.rank1.jsonl", 3, rank=1)
    output = tmp_path / "report.html"
    assert report.main([str(run), str(second), "-o", str(output)]) == 0
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 900})
        page.set_default_timeout(120_000)
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(output.as_uri())
        assert asked == [output.as_uri()]
        assert complaints == []
        assert page.locator("figure h2").all_inner_texts() == [
            "Longest steps",
            "Time of a step",
            "Throughput",
            "Waiting",
            "Settings",
            "Memory",
        ]
        for chart in page.locator("figure svg").all():
            assert chart.locator(".point").count() >= 2
        assert page.locator(".sections h2").all_inner_texts() == [
            "Findings",
            "Where the time went",
            "Slowest steps",
            "Ranks",
            "Summary",
            "Settings of the loader",
            "Figures",
        ]
        advice = page.locator(".advice").inner_text()
        assert advice.startswith("Every 30 steps the training pauses for 1.2 s")
        assert "No drift: the steps" in page.locator("main").inner_text()
        assert "memory grows by <100 B> per batch" in page.locator("table").first.inner_text()
        for width in (380, 1240):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate(
                "[...document.querySelectorAll('.words')].every(e => e.scrollWidth <= e.clientWidth)"
            )
        if folder := os.environ.get("FASTLOAD_TEST_PICTURES"):
            page.screenshot(path=f"{folder}/report.png", full_page=True)
        browser.close()


def test_top_names_the_extra_that_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.delitem(sys.modules, "fastload.top")
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("fastload.top", run_name="__main__")
    assert ended.value.code == 2
    assert "needs rich: pip install 'fastload[monitor]'" in capsys.readouterr().err
