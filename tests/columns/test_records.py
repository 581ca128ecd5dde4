"""`Records` beside `numpy.memmap` of structured records."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Records
from tests.shared.compare import MANY_WORKERS, assert_same

pytestmark = MANY_WORKERS

KIND = np.dtype(
    [("label", "u1"), ("image", "u1", (3, 5, 4)), ("weight", "f4", (2,)), ("end", "u1")]
)


def written(folder, counts, header=b""):
    """Writes files of records; returns the records of all."""
    rng = np.random.default_rng(3)
    parts = [np.zeros(count, KIND) for count in counts]
    for number, part in enumerate(parts):
        part["label"] = rng.integers(0, 256, len(part))
        part["image"] = rng.integers(0, 256, part["image"].shape)
        part["weight"] = rng.normal(size=part["weight"].shape)
        (folder / f"part-{number}.bin").write_bytes(header + part.tobytes())
    return np.concatenate(parts)


def field(folder, name, **arguments):
    inner, start = KIND.fields[name][:2]
    base, shape = inner.subdtype or (inner, ())
    path = str(folder / "part-*.bin")
    return Records(path, shape, base, stride=KIND.itemsize, start=start, **arguments)


@pytest.mark.parametrize("name", ["label", "image", "weight"])
@pytest.mark.parametrize("header", [b"", b"sixteen bytes..."])
def test_fields_are_those_of_memmap(tmp_path, name, header):
    records = written(tmp_path, [7, 0, 1, 12], header)
    column = field(tmp_path, name, offset=len(header))
    assert len(column) == len(records)
    for index, record in enumerate(records):
        want = torch.as_tensor(np.array(record[name]))
        assert_same(column[index], want, f"sample {index}")
    again = pickle.loads(pickle.dumps(column))
    assert torch.equal(again[-1], column[-1])
    assert repr(again) == repr(column)


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_batches_are_torchs(tmp_path, workers):
    records = written(tmp_path, [40, 3, 21])
    columns = [field(tmp_path, "image"), field(tmp_path, "label", out_dtype="int64")]
    dataset = fastload.Dataset(tuple(columns))

    class Structured(torch.utils.data.Dataset):
        def __len__(self):
            return len(records)

        def __getitem__(self, index):
            record = records[index]
            return torch.from_numpy(record["image"].copy()), int(record["label"])

    def batches(kind, data, **arguments):
        torch.manual_seed(5)
        return list(kind(data, batch_size=9, shuffle=True, **arguments))

    ours = batches(fastload.Loader, dataset, num_workers=workers)
    assert_same(
        [tuple(batch) for batch in ours], [tuple(b) for b in batches(DataLoader, Structured())]
    )


def test_a_sample_is_the_record_unless_told_otherwise(tmp_path):
    images = np.arange(4 * 28 * 28, dtype=np.uint8).reshape(4, 28, 28)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(bytes(16) + images.tobytes())
    column = Records(path, (28, 28), offset=16)
    assert torch.equal(torch.stack(list(column)), torch.from_numpy(images))


def test_what_does_not_fit_is_refused_with_the_figures(tmp_path):
    written(tmp_path, [3])
    path = tmp_path / "part-0.bin"
    size = 3 * KIND.itemsize
    with pytest.raises(
        OSError, match=rf"part-0.bin.*{size} bytes.*header of 1 and records of {KIND.itemsize}"
    ):
        Records(path, (2,), stride=KIND.itemsize, offset=1)
    with pytest.raises(OSError, match="header of 1000000"):
        Records(path, (2,), offset=1_000_000)
    for arguments in ({"stride": 3}, {"stride": 4, "start": 1}, {"stride": 0}):
        with pytest.raises(ValueError, match=r"shape \[2, 2\] and dtype uint8.*record has"):
            Records(path, (2, 2), **arguments)
    with pytest.raises(ValueError, match="at least 0"):
        Records(path, (-1,))
    with pytest.raises(ValueError, match="at least 0"):
        Records(path, (1,), start=-1)
    with pytest.raises(ValueError, match="cannot be read as"):
        Records(path, (1,), out_dtype="float32")


def test_a_file_that_is_truncated_later_is_an_error_and_others_are_read(tmp_path):
    records = written(tmp_path, [3, 3])
    column = field(tmp_path, "label")
    with (tmp_path / "part-0.bin").open("r+b") as file:
        file.truncate(KIND.itemsize)
    with pytest.raises(OSError, match=r"part-0\.bin"):
        column[2]
    assert column[4] == records["label"][4]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn])
def test_dtypes_that_only_torch_has(tmp_path, dtype):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(32)))
    whole = torch.frombuffer(bytearray(range(32)), dtype=dtype)
    records = Records(path, (2,), dtype)
    assert torch.equal(
        torch.stack(list(records)).view(torch.uint8), whole.view(-1, 2).view(torch.uint8)
    )
    by_name = Records(path, (2,), str(dtype).removeprefix("torch."))
    assert by_name[0].dtype == dtype
