"""Scripts without `if __name__ == "__main__":`, which new processes would run again."""

import subprocess
import sys

import pytest

from fastload.lanes.no_workers import _is_guarded

SCRIPT = """
import logging
import multiprocessing
import sys

import torch

import fastload

logging.basicConfig(format="%(message)s")


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return sum(index for _ in range(index))


def train():
    multiprocessing.set_start_method("spawn", force=True)
    loader = fastload.Loader(Squares(), batch_size=4)
    print(sum(int(batch.sum()) for batch in loader))


"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("call", ["train()", "if __name__ == '__main__':\n    train()"])
def test_a_script_runs_once_with_and_without_a_guard(call, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + call + "\n")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=220, check=True
    )
    is_guarded = "__name__" in call
    assert done.stdout.split() == [str(sum(n * n for n in range(40)))]
    line = f"a new process would run {script}:{SCRIPT.count(chr(10)) + 1} again: "
    line += "put it below `if __name__ == '__main__':`"
    assert (line in done.stderr) is not is_guarded
    assert "Traceback" not in done.stderr


def test_a_guard_is_any_if_that_asks_for_the_name(tmp_path):
    file = tmp_path / "main.py"
    file.write_text(
        "run()\nif __name__ == '__main__':\n    run()\n    if True:\n        run()\nrun()\n"
    )
    assert [_is_guarded(str(file), line) for line in (1, 3, 5, 6)] == [False, True, True, False]
    assert _is_guarded(str(tmp_path / "missing.py"), 1)
