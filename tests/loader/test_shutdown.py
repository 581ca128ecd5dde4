"""The interpreter ends as if no loader had been there: code, stderr, time."""

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.shared.photographs import fifo, write_photographs
from tests.shared.program import arguments, assert_clean, run

pytestmark = pytest.mark.slow

LIVE = {
    "at module level": """
        it = iter(loader())
        next(it)
    """,
    "many, before their first batch": """
        live = [iter(loader()) for _ in range(20)]
    """,
    "kept batches": """
        it = iter(loader())
        kept = [next(it) for _ in range(30)]
        sys.modules["kept"] = kept  # until the very end
    """,
    "in a function that never returned its iterator": """
        def train():
            for step, batch in enumerate(loader(shuffle=True)):
                if step == 3:
                    return batch
        batch = train()
    """,
    "persistent": """
        it = loader(persistent_workers=True)
        for _ in range(2):
            next(iter(it))
    """,
    "in a cycle": """
        class Holder: pass
        holder = Holder()
        holder.me, holder.it = holder, iter(loader())
        next(holder.it)
        gc.disable()
    """,
    "collected half way": """
        it = iter(loader())
        next(it)
        del it
        gc.collect()
    """,
    "used by an atexit function": """
        import atexit
        it = iter(loader())
        next(it)
        atexit.register(lambda: it.__class__)
    """,
    "sys.exit": """
        it = iter(loader())
        next(it)
        sys.exit(0)
    """,
    "imported and not used": """
    """,
}


@pytest.mark.parametrize("name", LIVE)
def test_exit_with_live_iterators(name: str):
    assert_clean(LIVE[name])


def test_exit_with_an_iterator_in_a_thread():
    assert_clean("""
        def run():
            for batch in loader():
                time.sleep(0.001)
        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.05)
    """)


def test_exit_with_an_iterator_in_a_daemon_thread():
    assert_clean("""
        started = threading.Event()
        def run():
            while True:
                for batch in loader():
                    started.set()
        threading.Thread(target=run, daemon=True).start()
        started.wait()
    """)


def test_exit_with_workers_of_epochs_left_early_until_modules_are_gone():
    """At such an end names of modules are None: whether workers pay is not asked any more."""
    assert_clean("""
        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 64
            def __getitem__(self, index):
                time.sleep(0.002)
                return index
        slow = fastload.Loader(Slow(), 8)
        for _ in range(3):
            torch.left = iter(slow)
            next(torch.left)
    """)


def test_exit_code_is_the_programs():
    assert run("next(iter(loader())); sys.exit(7)").code == 7
    ended = run("it = iter(loader()); next(it); raise ValueError('of the program')")
    assert ended.code == 1
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert ended.err.endswith("ValueError: of the program\n")
    assert ended.err.count("Traceback") == 1


def test_threads_are_gone_after_shutdown_and_loading_says_so():
    assert_clean("""
        it = iter(fastload.Loader(heavy, batch_size=4, num_workers=2))
        next(it)
        _lib.shutdown()
        assert _lib.pool_threads() == 0
        try:
            while True:
                next(it)
        except (RuntimeError, StopIteration) as error:
            assert isinstance(error, RuntimeError), "batches are missing without a word"
    """)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A program whose `next` waits for a file that never comes."""
    [path] = write_photographs(tmp_path, 1)
    body = f"""
        it = iter(fastload.Loader(fastload.Dataset(Image([{str(path)!r}])), num_workers=2))
        try:
            print("waiting", flush=True)
            next(it)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise
    """
    with (
        fifo(path),
        subprocess.Popen(
            arguments(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program,
    ):
        assert line(program.stdout) == "waiting\n"
        time.sleep(0.3)
        yield program
        program.kill()


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def test_ctrl_c_while_waiting(waiting: "subprocess.Popen[str]"):
    sent = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    assert line(waiting.stdout) == "interrupted\n"
    assert time.monotonic() - sent < 0.3  # a slice of 100 ms, and a busy machine
    _, err = waiting.communicate(timeout=15)  # though a thread waits for the file still
    assert time.monotonic() - sent < 10
    assert waiting.returncode == -signal.SIGINT
    assert re.search(r"KeyboardInterrupt\n$", err)
    assert err.count("Traceback") == 1


@pytest.mark.parametrize("hook", ["before", "after_in_parent"])
def test_ctrl_c_while_workers_start(hook: str):
    """Within the hooks of a fork Python would print the interrupt, and go on. It is none of the child's."""
    assert_clean(
        f"""
        import signal

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, index):
                return index * index

        def interrupt():
            if forks.pop():
                signal.raise_signal(signal.SIGINT)

        forks = [False, True]
        os.register_at_fork({hook}=interrupt, after_in_child=_lib.check_interrupts)
        squares = fastload.Loader(Squares(), 2, num_workers=2, multiprocessing_context="fork")
        try:
            it = iter(squares)
            time.sleep(5)  # it comes a millisecond after the fork
        except KeyboardInterrupt:
            print("interrupted")
        forks = [False, False]
        print(len(list(squares)))
        """,
        "interrupted\n4\n",
    )


def test_sigterm_while_waiting(waiting: "subprocess.Popen[str]"):
    waiting.terminate()
    _, err = waiting.communicate(timeout=5)
    assert waiting.returncode == -signal.SIGTERM
    assert err == ""


def test_a_signal_handler_that_raises_while_waiting(tmp_path: Path):
    """Any handler runs within the wait, and its exception comes out of `next`."""
    [path] = write_photographs(tmp_path, 1)
    with fifo(path):
        ended = run(f"""
            import signal
            def ring(*_):
                raise TimeoutError("of the handler")
            signal.signal(signal.SIGALRM, ring)
            it = iter(fastload.Loader(fastload.Dataset(Image([{str(path)!r}])), num_workers=2))
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            started = time.monotonic()
            try:
                next(it)
            except TimeoutError:
                print(time.monotonic() - started < 0.5)
            sys.stdout.flush()
        """)
    assert ended == (0, "True\n", "")


def test_exit_while_a_native_thread_waits_for_a_file(tmp_path: Path):
    """Native threads are waited for with a limit: the program ends though one never will."""
    [path] = write_photographs(tmp_path, 1)
    with fifo(path):
        started = time.monotonic()
        assert_clean(f"""
            it = iter(fastload.Loader(fastload.Dataset(Image([{str(path)!r}])), num_workers=2))
            time.sleep(0.2)
        """)
        assert time.monotonic() - started < 20
