"""Findings that hold in several windows have one beginning, and one number in a file."""

from fastload.monitoring.detect import Standing
from fastload.monitoring.sinks.jsonl import JsonLines
from fastload.runs.file import RunFile

from .monitored import finding, window


def period(since, pause="0.25", every=30):
    what = f"every {every} steps the training pauses for {pause} s, in search (train.py:8)"
    return finding(what=what, since_step=since, since_s=float(since))


def since(standing, step, *findings):
    return [(each.since_step, each.since_s) for each in standing.look(findings, step)]


def test_the_beginning_does_not_move_on():
    standing = Standing()
    assert since(standing, 100, period(9)) == [(9, 9.0)]
    assert since(standing, 200, period(39, "0.252")) == [(9, 9.0)]
    assert since(standing, 300) == []  # missed once
    assert since(standing, 400, period(129, "1.25")) == [(9, 9.0)]
    assert since(standing, 500, period(401)) == [(401, 401.0)]  # it was over
    assert since(standing, 600, period(300)) == [(300, 300.0)]  # more is known of it


def test_a_finding_is_the_same_in_another_unit():
    standing = Standing()
    for step, pause in enumerate(["950 ms", "1.02 s", "2 min 5 s", "3 h 20 min", "2 days 6 h"]):
        what = f"every 30 steps the training pauses for {pause}, in search (train.py:8)"
        (found,) = standing.look([finding(what=what, since_step=step)], step + 1)
        assert (found.number, found.since_step) == (0, 0)


def test_different_findings_are_told_apart():
    standing = Standing()
    two = [period(9), period(59, every=100), finding("stall", since_step=3, owner="data")]
    assert [at for at, _ in since(standing, 200, *two)] == [9, 59, 3]
    later = [period(159, every=100), period(69), finding("stall", since_step=90)]
    assert [at for at, _ in since(standing, 300, *later)] == [59, 9, 90]
    alike = [period(109), period(129)]
    assert [at for at, _ in since(standing, 400, *alike)] == [9, 129]


def test_a_file_has_it_once(tmp_path):
    standing, sink = Standing(), JsonLines(tmp_path / "run.jsonl")
    sink.start({})
    for number in range(10):
        made = window(number)
        sink.write(made, standing.look([period(5 * number, f"0.2{number}")], made.step))
    sink.close()
    run = RunFile(tmp_path / "run.jsonl").run
    assert len(run.findings) == 1
    assert run.findings[0].since_step == 0
    assert "0.29 s" in run.findings[0].what


def test_findings_of_one_owner_have_numbers_of_their_own(tmp_path):
    standing, sink = Standing(), JsonLines(tmp_path / "run.jsonl")
    sink.start({})
    words = (
        "the memory grows by 2 kB per batch",
        "the number of threads grows by 2 per 1,000 batches",
    )
    for number in range(3):
        two = [finding("growth", what=what, since_step=0) for what in words[:: (-1) ** number]]
        sink.write(window(number), standing.look(two, window(number).step))
    later = finding("growth", what=words[0], since_step=900)  # it was over
    sink.write(window(100), standing.look([later], 1000))
    sink.close()
    run = RunFile(tmp_path / "run.jsonl").run
    assert {number: found.what for number, found in run.findings.items()} == {
        **dict(enumerate(words)),
        2: words[0],
    }
    assert run.last_steps == {0: 29, 1: 29, 2: 1009}
