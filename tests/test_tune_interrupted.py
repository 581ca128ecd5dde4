"""Ctrl-C: what is known by then is told."""

import json
import signal
import subprocess

from ._tune import TAKES_TIME, command, write_targets

pytestmark = TAKES_TIME


def test_an_interrupted_run_tells_what_it_knows(tmp_path):
    write_targets(tmp_path)
    arguments = command("targets:loader", "--json", "--html", "report.html", seconds=60)
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if "loading with 2" in line:  # so the run with one thread is over
                break
        running.send_signal(signal.SIGINT)
        out, rest = running.communicate()
    assert running.returncode == 130, rest
    assert "Traceback" not in rest
    account = json.loads(out)
    assert account["interrupted"] is True
    assert account["curves"][0]["points"][0]["workers"] == 1
    assert account["plan"] is None
    assert "Interrupted" in (tmp_path / "report.html").read_text()
