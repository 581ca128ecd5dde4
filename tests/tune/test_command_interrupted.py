"""Ctrl-C: what is known by then is told."""

import json
import signal
import subprocess

from .command import TAKES_TIME, command, write_targets

pytestmark = TAKES_TIME


def interrupted(folder, target, when):
    """Runs the command, interrupts it when its progress tells something, and returns the account."""
    arguments = command(target, "--json", "--html", "report.html", seconds=60)
    with subprocess.Popen(
        arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if when in line:
                break
        running.send_signal(signal.SIGINT)
        out, rest = running.communicate()
    assert running.returncode == 130, rest
    assert "Traceback" not in rest
    assert "Interrupted" in (folder / "report.html").read_text()
    return json.loads(out)


def test_an_interrupted_run_tells_what_it_knows(tmp_path):
    write_targets(tmp_path)
    account = interrupted(tmp_path, "targets:loader", "loading with 2")
    assert account["interrupted"] is True
    assert account["curves"][0]["points"][0]["workers"] == 1
    assert account["plan"] is None


def test_lanes_that_were_measured_are_told(tmp_path):
    write_targets(tmp_path)
    account = interrupted(tmp_path, "targets:python", "loading with 1 process")
    assert [cost["run"]["lane"] for cost in account["lanes"]["costs"]] == ["inline"]
    assert account["lanes"]["costs"][0]["run"]["rate"] > 0
