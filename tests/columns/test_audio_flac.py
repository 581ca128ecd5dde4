"""`Audio` of FLAC files beside soundfile: depths, channels, stretches, metadata, damage."""

import struct

import numpy as np
import pytest
import soundfile
import torch

from fastload.columns import Audio
from tests.shared.compare import MANY_WORKERS, assert_as_torchs
from tests.shared.sizes import WORKERS

from .damage import flipped, tally
from .formats import FORMATS
from .sounds import encode, identical, save, sound, theirs

pytestmark = MANY_WORKERS

SUBTYPES = ["PCM_S8", "PCM_16", "PCM_24"]
DTYPES = ["float32", "float64", "int16", "int32"]


def flac(samples, rate=16000, subtype="PCM_16", **named):
    """The bytes of a file."""
    return encode(samples, rate, format="FLAC", subtype=subtype, **named)


def with_blocks(file, *blocks):
    """A file with more blocks of metadata, (kind, body) each, behind its first."""
    more = b"".join(
        bytes([kind]) + struct.pack(">I", len(body))[1:] + body for kind, body in blocks
    )
    return file[:42] + more + file[42:]


def without_length(file):
    """A file whose header does not say how long it is, as an encoder writes to a pipe."""
    fields = bytearray(file)
    fields[21] &= 0xF0
    fields[22:26] = bytes(4)
    return bytes(fields)


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_every_depth_and_number_of_channels_is_soundfiles(tmp_path, subtype):
    shapes = [(1, 1), (15, 2), (4096, 1), (4097, 2), (9000, 2), (5000, 3), (5000, 6), (700, 8)]
    paths = save(tmp_path, [flac(sound(*shape), subtype=subtype) for shape in shapes])
    for dtype in DTYPES:
        column = Audio(paths, dtype=dtype)
        assert all(
            identical(ours, theirs(path, dtype)) for path, ours in zip(paths, column, strict=True)
        )


@pytest.mark.parametrize(
    "rate", [1, 8000, 11025, 22050, 37800, 44100, 48000, 96000, 192000, 655350]
)
def test_every_rate(tmp_path, rate):
    [path] = save(tmp_path, [flac(sound(5000), rate)])
    column = Audio([path], sample_rate=rate)
    assert identical(column[0], theirs(path))
    assert column.sample_rate(0) == rate == soundfile.info(path).samplerate


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_silence_noise_and_extremes(tmp_path, subtype):
    noise = np.random.default_rng(0).uniform(-1, 1, (9000, 2))
    square = np.sign(np.sin(np.arange(9000) * 0.3))[:, None] * [1.0, -1.0]
    constant = np.full((9000, 2), 0.25)
    wide = np.stack([sound(9000)[:, 0], -sound(9000)[:, 0]], axis=1)
    signals = [np.zeros((9000, 2)), noise, square, constant, wide, np.round(noise * 8) / 16]
    paths = save(tmp_path, [flac(signal, subtype=subtype) for signal in signals])
    assert all(
        identical(ours, theirs(path)) for path, ours in zip(paths, Audio(paths), strict=True)
    )


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_every_level_of_compression(tmp_path, level):
    [path] = save(tmp_path, [flac(sound(12000, 2), compression_level=level)])
    assert identical(Audio([path])[0], theirs(path))


def test_a_file_without_a_length_has_that_of_its_frames(tmp_path):
    file = flac(sound(9000, 2))
    path, open_ended = save(tmp_path, [file, without_length(file)])
    column = Audio([open_ended])
    assert identical(column[0], theirs(path))
    assert identical(
        Audio([open_ended], start=5000, frames=10)[0], theirs(path)[:, 5000:5010].clone()
    )


def test_metadata_and_tags_are_passed_over(tmp_path):
    file = flac(sound(5000))
    picture = struct.pack(">I", 3) + struct.pack(">I", 9) + b"image/png" + bytes(4 + 16)
    blocks = [
        (1, bytes(5000)),
        (2, b"testabc"),
        (3, bytes(18)),
        (6, picture + struct.pack(">I", 0)),
    ]
    tag = b"ID3\x03\0\0\0\0\0\x14" + bytes(20)
    files = [with_blocks(file, *blocks), tag + file, file + b"TAG" + bytes(125)]
    for path in save(tmp_path, files):
        assert identical(Audio([path])[0], theirs(path))


STRETCHES = [
    ({"start": 100, "frames": 50}, (100, 150)),
    ({"start": 4000, "frames": 5000}, (4000, 9000)),
    ({"start": 4096, "frames": 4096}, (4096, 8192)),
    ({"start": -10}, (-10, None)),
    ({"start": 12000}, (9999, 9999)),
    ({"offset": 0.3, "duration": 0.1}, (4800, 6400)),
]


@pytest.mark.parametrize(("named", "bounds"), STRETCHES)
def test_stretches_are_slices(tmp_path, named, bounds):
    [path] = save(tmp_path, [flac(sound(9999, 2))])
    assert identical(Audio([path], **named)[0], theirs(path)[:, slice(*bounds)].clone())
    mono = Audio([path], mono=True, **named)[0]
    expected = theirs(path).numpy().mean(axis=0)[slice(*bounds)]
    assert identical(mono, torch.from_numpy(expected.copy()))


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(tmp_path, num_workers):
    files = [
        flac(sound(5000 + n, 2, n), subtype=SUBTYPES[n % 3], compression_level=n % 2)
        for n in range(30)
    ]
    paths = save(tmp_path, files)
    dataset = [theirs(path, frames=4500) for path in paths]
    assert_as_torchs(Audio(paths, frames=4500), dataset, 4, num_workers=num_workers)


@pytest.mark.parametrize("kind", [3, 4, 5, 6])
def test_damaged_metadata_are_refused_or_passed_over_as_by_soundfile(tmp_path, kind):
    bodies = {
        3: bytes(36),
        4: struct.pack("<I", 4) + b"here" + struct.pack("<II", 1, 3) + b"A=b",
        5: bytes(395) + b"\1" + bytes(8) + b"\1" + bytes(26) + b"\1" + bytes(12),
        6: struct.pack(">II", 3, 9) + b"image/png" + struct.pack(">I", 2) + b"it" + bytes(20),
    }
    file = with_blocks(flac(sound(50), 8000), (kind, bodies[kind]))
    near = range(42, 46 + len(bodies[kind]))
    damaged = [(what, data) for what, data in flipped(file, (0x01, 0xFF)) if what[1] in near]
    table = tally(FORMATS["FLAC"], tmp_path, damaged)
    assert table.read_alone == []
    assert table.differ == []


def test_a_frame_with_a_wrong_checksum_is_refused_also_beside_the_stretch(tmp_path):
    file = bytearray(flac(sound(20000)))
    file[-1000] ^= 1
    [path] = save(tmp_path, [bytes(file)])
    with pytest.raises(OSError, match=r"0000\.bin.*frame \d+ of its sound is damaged"):
        Audio([path], frames=100)[0]


@pytest.mark.parametrize("length", [1, 4999, 5001, (1 << 36) - 1])
def test_another_length_than_announced_is_refused(tmp_path, length):
    file = bytearray(flac(sound(5000)))
    file[21] = file[21] & 0xF0 | length >> 32
    file[22:26] = (length & 0xFFFFFFFF).to_bytes(4, "big")
    [path] = save(tmp_path, [bytes(file)])
    with pytest.raises(OSError, match="announces"):
        Audio([path])[0]
