"""`Npy`, `Npz` and `Pt`: what holds of every column with one array in each file."""

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Npy, Npz, Pt
from tests.shared.compare import MANY_WORKERS

pytestmark = MANY_WORKERS


def write_npz(path, array):
    np.savez(path, before=np.arange(3), x=array, zlast=np.array(3))


def write_pt(path, array):
    torch.save(torch.from_numpy(array), path)


KINDS = {
    "npy": (np.save, Npy),
    "npz": (write_npz, lambda paths: Npz(paths, "x")),
    "pt": (write_pt, Pt),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def save(folder, kind, arrays):
    """Writes one file for each array; returns the paths, and the function that writes one."""
    write, _ = KINDS[kind]
    paths = [folder / f"{number:04}.{kind}" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        write(path, array)
    return paths, write


def test_one_bad_file_among_good_ones_fails_its_own_batch(tmp_path, kind):
    paths, write = save(tmp_path, kind, [np.full(2, n, "f4") for n in range(8)])
    paths[2].write_bytes(b"no array and no archive")
    paths[4].unlink()
    write(paths[6], np.zeros(2, "f8"))
    batches = iter(fastload.Loader(KINDS[kind][1](paths), batch_size=2))
    assert next(batches).shape == (2, 2)
    with pytest.raises(OSError, match=rf"0002\.{kind}.*first bytes"):
        next(batches)
    with pytest.raises(FileNotFoundError, match=rf"0004\.{kind}"):
        next(batches)
    with pytest.raises(OSError, match=rf"0006\.{kind}.*float64.*float32"):
        next(batches)


def test_a_file_that_changes_or_vanishes_is_an_error_that_says_so(tmp_path, kind):
    paths, write = save(tmp_path, kind, [np.full(100, n, "f4") for n in range(3)])
    column = KINDS[kind][1](paths)
    write(paths[0], np.zeros(200, "f4"))
    with pytest.raises(OSError, match=rf"0000\.{kind}.*changed since"):
        column[0]
    with paths[1].open("r+b") as file:
        file.truncate(200)
    with pytest.raises(OSError, match=rf"0001\.{kind}.*changed since"):
        column[1]
    paths[2].unlink()
    with pytest.raises(FileNotFoundError, match=rf"0002\.{kind}"):
        column[2]
