"""Files that fastload writes: whole or not at all, beside other writers, and where writing fails."""

import contextlib
import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from fastload import _lib
from fastload.batching.fields import lengths_by
from fastload.columns import Jsonl
from tests.shared.storm import in_child

from .lines import write_lines

LINES = [{"a": number} for number in range(2000)]


def index(folder: Path) -> Path:
    """Writes an index of lines; returns its path."""
    path = folder / "x.jsonl"
    if not path.exists():
        write_lines(folder, LINES, "x.jsonl")
    assert len(Jsonl(path, "a", index=True)) == len(LINES)
    return folder / "x.jsonl.index"


def lengths(folder: Path) -> Path:
    """Writes a cache of lengths; returns its path."""
    path = folder / "x.lengths"
    key = {"fingerprint": None, "samples": 2000}
    found = lengths_by(key, path, lambda: _lib.Lengths.from_bytes(bytes(8000)))
    assert len(found.to_bytes()) == 8000
    return path


def plain(folder: Path) -> Path:
    """Writes what a profile or a report is written by."""
    _lib.write_file(folder / "x.toml", b"x" * 5000)
    return folder / "x.toml"


WRITERS = {"index": index, "lengths": lengths, "plain": plain}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_link_under_a_name_that_can_be_guessed_is_not_followed(tmp_path):
    path = index(tmp_path)
    path.unlink()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    guessed = tmp_path / f"{path.name}.{os.getpid()}"
    guessed.symlink_to(victim)
    assert index(tmp_path) == path
    assert not path.is_symlink()
    assert victim.read_text() == "mine"
    assert guessed.is_symlink()


@pytest.mark.parametrize("writer", WRITERS)
def test_writers_of_one_process_number_leave_one_whole_file(tmp_path, writer):
    """As two containers on a shared file system have; here they are threads."""
    write = WRITERS[writer]
    path = write(tmp_path)
    whole = path.read_bytes()
    errors: list[BaseException] = []

    def again() -> None:
        try:
            for _ in range(15):
                path.unlink(missing_ok=True)
                write(tmp_path)
                with contextlib.suppress(FileNotFoundError):  # another has removed it
                    assert path.read_bytes() == whole
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=again) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert names(tmp_path) <= {path.name, "x.jsonl"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("existing", [True, False])
def test_nothing_is_left_and_nothing_lost_where_there_is_no_room(tmp_path, writer, existing):
    write = WRITERS[writer]
    path = write(tmp_path)
    if existing:
        before: bytes | None = b"an older one" if writer == "plain" else b""
        path.write_bytes(before)
    else:
        before = None
        path.unlink()
    kept = names(tmp_path)

    def child(_: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(OSError, match=path.name) as failed:
            write(tmp_path)
        assert failed.value.errno is not None

    assert in_child(child, 0) == ""
    assert names(tmp_path) == kept
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_link_is_kept_and_what_is_no_file_is_written_to(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("target")
    _lib.write_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    read, write = os.pipe()
    _lib.write_file(f"/proc/self/fd/{write}", b"through")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"through"
    with pytest.raises(OSError, match="none"):
        _lib.write_file(tmp_path / "none/x", b"")
    anything: Any = [tmp_path]
    with pytest.raises(TypeError):
        _lib.write_file(anything, b"")
