"""Runs Python programs in forks of a process that has imported torch, which takes seconds each time.

A program has modules, arguments, outputs and an end of its own, as that of `python -W error` does. Where it matters
what is imported, what torch reads when it is imported, or which signals come, tests start an interpreter.
"""

import atexit
import functools
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

from tests.shared import large_pages
from tests.shared.repository import ROOT


def run(
    *arguments: str | Path, folder: str | Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder; returns what it has printed, and its exit code.

    Args:
        *arguments: Those of the interpreter: `-c` and code, or `-m` and a module; before them, `-W` and a filter of
            warnings, in front of that which makes them errors. Then those of the program.
        folder: The working directory; None for that of this process.
    """
    if sys.platform != "linux":
        command = [sys.executable, "-W", "error", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as outputs:
        out, err = Path(outputs, "out"), Path(outputs, "err")
        request = {
            "arguments": list(map(str, arguments)),
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ),
            "outputs": (str(out), str(err)),
        }
        try:
            print(json.dumps(request), file=server.stdin, flush=True)
            code = int(server.stdout.readline())
        except BaseException:  # the time of the test is up: it is not waited for
            _server.cache_clear()
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            raise
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Returns the process that forks."""
    server = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.shared.interpreter"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    with server:  # which closes its input
        pass


def _accepted() -> dict[str, Any] | None:
    """Returns the request of a program in the process that will run it; None at the end of all, where it was forked."""
    import torch  # noqa: F401

    gc.collect()
    gc.freeze()  # the end of a program then looks at what it has made, not at the million objects of torch
    large_pages.use_from_first_fork()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def _begin(request: dict[str, Any]) -> None:
    """Runs a program in this process, as the interpreter would."""
    for number, path in enumerate((os.devnull, *request["outputs"])):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    kind, what, *further = request["arguments"]
    if kind == "-W":
        sys.warnoptions.append(what)
        warnings._processoptions([what])
        kind, what, *further = further
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if kind == "-m":
        sys.path[0], sys.argv = request["folder"], ["-m", *further]
        runpy._run_module_as_main(what)
    else:
        sys.path[0], sys.argv = "", ["-c", *further]
        exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    given = _accepted()
    if given is not None:
        _begin(given)
