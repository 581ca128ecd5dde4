"""`Audio` of WAV files beside soundfile: encodings, chunks, lengths, stretches, damage."""

import struct

import numpy as np
import pytest
import soundfile
import torch

import fastload
from fastload.columns import Audio, Rows
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

from .sounds import encode, identical, save, sound, theirs

pytestmark = MANY_WORKERS

INTEGERS = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32"]
FLOATS = ["FLOAT", "DOUBLE"]
DTYPES = ["float32", "float64", "int16", "int32"]


def chunk(name, body, size=None):
    """A chunk of RIFF; `size` is what it says of itself."""
    size = len(body) if size is None else size
    return name + struct.pack("<I", size) + body + b"\0" * (len(body) % 2)


def fmt(code=1, channels=1, rate=8000, bits=16, align=None, rest=b""):
    """A chunk that says what frames are."""
    align = channels * bits // 8 if align is None else align
    body = struct.pack("<HHIIHH", code, channels, rate, rate * align, align, bits)
    return chunk(b"fmt ", body + rest)


def riff(*chunks, size=None):
    """A file of chunks."""
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


PCM = np.arange(-50, 50, dtype="<i2").tobytes()


@pytest.mark.parametrize("container", ["WAV", "WAVEX", "RF64"])
@pytest.mark.parametrize("subtype", INTEGERS + FLOATS)
def test_every_encoding_is_soundfiles(tmp_path, container, subtype):
    dtypes = DTYPES if subtype in INTEGERS else DTYPES[:2]
    shapes = [(0, 1), (1, 2), (1001, 1), (1000, 2), (333, 3), (100, 8), (3, 17)]
    files = [encode(sound(*shape), format=container, subtype=subtype) for shape in shapes]
    paths = save(tmp_path, files)
    for dtype in dtypes:
        column = Audio(paths, dtype=dtype)
        assert all(
            identical(ours, theirs(path, dtype)) for path, ours in zip(paths, column, strict=True)
        )


@pytest.mark.parametrize("subtype", INTEGERS)
def test_every_bit_pattern_of_integers_is_soundfiles(tmp_path, subtype):
    width = {"PCM_U8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4}[subtype]
    extremes = b"".join(
        value.to_bytes(width, "little", signed=True)
        for value in (-(1 << (8 * width - 1)), (1 << (8 * width - 1)) - 1, 0, 1, -1)
    )
    noise = np.random.default_rng(0).bytes(width * 5000)
    file = riff(fmt(bits=8 * width), chunk(b"data", extremes + noise))
    [path] = save(tmp_path, [file])
    for dtype in DTYPES:
        assert identical(Audio([path], dtype=dtype)[0], theirs(path, dtype))


def test_every_bit_pattern_of_floats_is_soundfiles(tmp_path):
    noise = np.random.default_rng(0).bytes(8 * 5000)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, 2.0], "<f4").tobytes()
    files = [
        riff(fmt(3, bits=32), chunk(b"data", special + noise)),
        riff(
            fmt(3, bits=64), chunk(b"data", np.frombuffer(special, "<f4").astype("<f8").tobytes())
        ),
    ]
    for path in save(tmp_path, files):
        assert identical(Audio([path])[0], theirs(path))


@pytest.mark.parametrize(
    "file",
    [
        riff(
            chunk(b"JUNK", b"abc"),
            fmt(),
            chunk(b"LIST", b"INFOISFT\4\0\0\0abc\0"),
            chunk(b"data", PCM),
        ),
        riff(fmt(), chunk(b"data", PCM), chunk(b"LIST", b"INFOISFT\4\0\0\0abc\0")),
        riff(fmt(rest=b"\0\0"), chunk(b"fact", struct.pack("<I", 100)), chunk(b"data", PCM)),
        riff(fmt(bits=8), chunk(b"data", PCM[:99]), chunk(b"junk", b"x" * 10)),
        riff(fmt(), chunk(b"bext", b"\0" * 602), chunk(b"id3 ", b"x" * 600), chunk(b"data", PCM)),
        riff(fmt(), chunk(b"data", PCM + b"\1")),
        riff(fmt(), chunk(b"data", PCM), b"\0\0\0\0\0\0\0\0"),
        riff(fmt(), chunk(b"data", b"")),
    ],
)
def test_chunks_before_and_behind_the_sound(tmp_path, file):
    [path] = save(tmp_path, [file])
    assert identical(Audio([path])[0], theirs(path))


@pytest.mark.parametrize("size", [0, 8, 36, 236, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("data", [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFF0000, 0, 200, 100])
def test_lengths_that_a_stream_left_open(tmp_path, size, data):
    [path] = save(tmp_path, [riff(fmt(), chunk(b"data", PCM, data), size=size)])
    if data == 0 and size != 8:  # soundfile: no sound
        with pytest.raises(OSError, match="announces no sound, and bytes follow"):
            Audio([path])
        return
    assert identical(Audio([path])[0], theirs(path))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (riff(fmt(6, bits=8), chunk(b"data", PCM)), "A-law of 8 bits"),
        (riff(fmt(7, bits=8), chunk(b"data", PCM)), "mu-law of 8 bits"),
        (riff(fmt(2, bits=4, align=256), chunk(b"data", PCM)), "ADPCM"),
        (riff(fmt(bits=12, align=2), chunk(b"data", PCM)), "PCM of 12 bits"),
        (riff(fmt(align=3), chunk(b"data", PCM)), "another number of bytes"),
        (riff(fmt(channels=0), chunk(b"data", PCM)), "0 channels"),
        (riff(fmt(rate=0), chunk(b"data", PCM)), "0 frames a second"),
        (riff(fmt(0xFFFE, rest=b"\0" * 24), chunk(b"data", PCM)), "sub-format"),
        (riff(chunk(b"data", PCM), fmt()), "wrong place"),
        (riff(fmt()), "no data"),
        (riff(fmt(), chunk(b"data", PCM, 300)), "announces 300 bytes of sound, but 200 follow"),
        (riff(fmt(), chunk(b"data", PCM), chunk(b"data", PCM)), "after its sound"),
        (b"RIFX" + riff(fmt(), chunk(b"data", PCM))[4:], "little-endian"),
        (b"an image, perhaps" * 10, "not a WAV, FLAC, MP3 or Ogg Vorbis"),
        (b"", "not a WAV, FLAC, MP3 or Ogg Vorbis"),
    ],
)
def test_what_is_not_read_is_refused_with_words(tmp_path, file, words):
    [path] = save(tmp_path, [file])
    with pytest.raises(OSError, match=words) as refused:
        Audio([path])
    assert str(path) in str(refused.value)


def test_integers_are_no_floats(tmp_path):
    [path] = save(tmp_path, [encode(sound(10), format="WAV", subtype="FLOAT")])
    with pytest.raises(OSError, match="no scale as int16; use dtype=float32"):
        Audio([path], dtype="int16")[0]


@pytest.mark.parametrize("channels", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("dtype", ["float32", "float64", torch.float32])
def test_mono_is_the_mean_that_numpy_computes(tmp_path, channels, dtype):
    for subtype in ("PCM_16", "PCM_32", "FLOAT"):
        [path] = save(tmp_path, [encode(sound(500, channels), format="WAV", subtype=subtype)])
        both = theirs(path, str(dtype).removeprefix("torch.")).numpy()
        ours = Audio([path], mono=True, dtype=dtype)[0]
        assert identical(ours, torch.from_numpy(both.mean(axis=0)))


STRETCHES = [
    ({"start": 10}, (10, None)),
    ({"start": 10, "frames": 20}, (10, 30)),
    ({"start": -30, "frames": 20}, (-30, -10)),
    ({"start": -5000}, (0, None)),
    ({"start": 990, "frames": 20}, (990, 1000)),
    ({"start": 2000}, (1000, 1000)),
    ({"start": 2**70}, (1000, 1000)),
    ({"start": -(2**70), "frames": 2**70}, (0, 1000)),
    ({"frames": 0}, (0, 0)),
    ({"offset": 0.01}, (160, None)),
    ({"offset": 0.0123, "duration": 0.03}, (196, 196 + 480)),
    ({"duration": 0.01}, (0, 160)),
    ({"offset": 9.0}, (1000, 1000)),
]


@pytest.mark.parametrize(("named", "bounds"), STRETCHES)
def test_stretches_are_slices(tmp_path, named, bounds):
    [path] = save(tmp_path, [encode(sound(1000, 2), format="WAV", subtype="PCM_24")])
    assert identical(Audio([path], **named)[0], theirs(path)[:, slice(*bounds)].clone())


def test_a_stretch_reads_no_more_than_its_frames(tmp_path):
    [path] = save(tmp_path, [encode(sound(50000, 2), format="WAV", subtype="PCM_16")])
    loader = fastload.Loader(Audio([path], start=100, frames=50), batch_size=1, num_workers=1)
    next(batches := iter(loader))
    assert batches is not None
    assert loader.stats()["read_bytes"] == 50 * 2 * 2


def test_each_file_can_have_a_stretch_of_its_own(tmp_path):
    files = [encode(sound(1000, 1, seed), format="WAV") for seed in range(3)]
    paths = save(tmp_path, files)
    column = Audio(paths, start=[0, 100, -200], frames=50)
    for path, ours, start in zip(paths, column, [0, 100, 800], strict=True):
        assert identical(ours, theirs(path)[:, start : start + 50].clone())
    timed = Audio(paths, offset=0.01, duration=[0.01, 0.02, 0.005])
    assert [sample.shape[1] for sample in timed] == [160, 320, 80]


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(tmp_path, num_workers):
    subtypes = INTEGERS + FLOATS
    files = [encode(sound(300 + n, 2, n), format="WAV", subtype=subtypes[n % 6]) for n in range(60)]
    paths = save(tmp_path, files)
    dataset = [(theirs(path, frames=256), n) for n, path in enumerate(paths)]
    mixed = fastload.Dataset((Audio(paths, frames=256), Rows(torch.arange(60))))
    assert_as_torchs(mixed, dataset, 8, num_workers=num_workers)


def test_different_lengths_are_torchs_error_and_the_next_batch_comes(tmp_path):
    paths = save(tmp_path, [encode(sound(n), format="WAV") for n in (30, 30, 30, 40, 50, 50)])
    batches = iter(fastload.Loader(Audio(paths), batch_size=2))
    assert next(batches).shape == (2, 1, 30)
    with pytest.raises(
        RuntimeError, match=r"equal size, but got \[1, 30\] at entry 0 and \[1, 40\]"
    ):
        next(batches)
    assert next(batches).shape == (2, 1, 50)


def test_sample_rates_are_known_and_checked(tmp_path):
    files = [encode(sound(20), rate, format="WAV") for rate in (8000, 16000)]
    paths = save(tmp_path, [*files, b"nothing"])
    column = Audio(paths)
    assert [column.sample_rate(n) for n in (0, 1, -2)] == [8000, 16000, 16000]
    with pytest.raises(OSError, match=r"0002\.bin"):
        column.sample_rate(2)
    with pytest.raises(IndexError):
        column.sample_rate(3)
    checked = Audio(paths, sample_rate=16000)
    assert checked[1].shape == (1, 20)
    with pytest.raises(
        OSError, match=r"0000\.bin.*sample rate is 8000, but rate=16000 was requested"
    ):
        checked[0]


def test_one_bad_file_among_good_ones_fails_its_own_batch(tmp_path):
    paths = save(tmp_path, [encode(sound(20, 1, n), format="WAV") for n in range(8)])
    paths[2].write_bytes(b"no sound")
    paths[4].unlink()
    column = Audio(paths)
    soundfile.write(paths[6], sound(25), 16000, format="WAV")
    batches = iter(fastload.Loader(column, batch_size=2))
    assert next(batches).shape == (2, 1, 20)
    with pytest.raises(OSError, match=r"0002\.bin.*first bytes"):
        next(batches)
    with pytest.raises(FileNotFoundError, match=r"0004\.bin"):
        next(batches)
    with pytest.raises(OSError, match=r"0006\.bin.*changed since"):
        next(batches)


def test_the_column_is_small_when_pickled_and_reads_its_files_again(tmp_path):
    save(tmp_path, [encode(sound(2000, 1, n), format="WAV") for n in range(3)])
    column = Audio(str(tmp_path / "*.bin"), offset=0.01, duration=0.1, mono=True, dtype="float64")
    again = reread(column, 1000)
    assert repr(again) == "Audio(3 files of float64, shape (1600,))"


def test_words_for_arguments_that_make_no_sense(tmp_path):
    paths = save(tmp_path, [encode(sound(20), format="WAV")])
    for named, words in [
        ({"offset": 1.0, "start": 3}, "not some of both"),
        ({"offset": -1.0}, "from 0 on"),
        ({"duration": float("nan")}, "from 0 on"),
        ({"frames": -1}, "number of frames"),
        ({"start": [1, 2]}, "2 numbers for 1 files"),
        ({"dtype": "uint8"}, "'float32', 'float64', 'int16', 'int32'"),
        ({"dtype": "int16", "mono": True}, "mean of channels"),
        ({"sample_rate": 0}, "frames per second"),
    ]:
        with pytest.raises(ValueError, match=words):
            Audio(paths, **named)
    with pytest.raises(TypeError):
        Audio(paths, start=1.5)
    with pytest.raises(OSError, match="no file"):
        Audio([])
