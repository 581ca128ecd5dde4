"""`Audio` of MP3 and Ogg Vorbis files beside soundfile: lengths, stretches, damage."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Audio, Rows
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import WORKERS

from . import formats
from .damage import cut, tally
from .sounds import encode, save, sound, theirs, within

pytestmark = MANY_WORKERS

FORMATS = ["MP3", "OGG"]
RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]


def without_tag(file):
    """An MP3 without the frame that says how long it is."""
    return file[file.index(file[:2], 4) :]


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("rate", RATES)
def test_every_rate_and_length_is_soundfiles(tmp_path, container, rate):
    shapes = [(1, 1), (575, 2), (1152, 1), (1153, 2), (10000, 1), (20001, 2)]
    paths = save(tmp_path, [encode(sound(*shape), rate, format=container) for shape in shapes])
    column = Audio(paths)
    for index, path in enumerate(paths):
        assert within(column[index], theirs(path))
        assert column.sample_rate(index) == rate


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("level", [0.0, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_quality_is_soundfiles(tmp_path, container, level, channels):
    samples = sound(30000, channels)
    samples[10000:20000] *= 0.01  # short blocks at the edges
    file = encode(samples, 44100, format=container, compression_level=level)
    [path] = save(tmp_path, [file])
    assert within(Audio([path])[0], theirs(path))


@pytest.mark.parametrize("mode", ["CONSTANT", "AVERAGE", "VARIABLE"])
@pytest.mark.parametrize("rate", [16000, 44100])
def test_bit_rates_of_mp3_with_and_without_the_tag(tmp_path, mode, rate):
    file = encode(sound(30000, 2), rate, format="MP3", bitrate_mode=mode, compression_level=0.5)
    tag = b"ID3\x03\0\0\0\0\x07\x68" + bytes(1000)
    bare = without_tag(file)
    end = b"TAG" + bytes(125)
    files = [file, bare, tag + file, tag + bare, file + end, bare + end]
    for number, path in enumerate(save(tmp_path, files)):
        assert within(Audio([path])[0], theirs(path)), number


def test_tags_with_less_in_them(tmp_path, capfd):
    file = encode(sound(3000, 2), 44100, format="MP3")
    lame = file.index(b"LAME")
    tags = [
        file[lame : lame + 9] + bytes(27),  # no padding, no checksums
        bytes(36),  # only Xing's
        b"Lavf58.12" + file[lame + 9 : lame + 32] + bytes(4),
        b"Lavf58.12" + bytes(12) + b"\x00\x00\x05" + bytes(12),
        b"Lavf58.12" + bytes(12) + b"\x24\x07\xff" + bytes(12),
    ]
    files = [file[:lame] + tag + file[lame + 36 :] for tag in tags]
    start = file.index(b"Xing") + 4 if b"Xing" in file else file.index(b"Info") + 4
    short = b"\0\0\0\1" + file[start + 4 : start + 8] + file[lame : lame + 32] + bytes(4)
    files.append((file[:start] + short).ljust(417, b"\0") + file[417:])
    for number, path in enumerate(save(tmp_path, files)):
        assert within(Audio([path])[0], theirs(path)), number
    huge = file[:lame] + b"Lavf58.12" + bytes(12) + b"\xff" * 3 + bytes(12) + file[lame + 36 :]
    [path] = save(tmp_path, [huge])
    with pytest.raises(OSError, match="more padding than samples"):
        Audio([path])
    capfd.readouterr()


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
@pytest.mark.parametrize(("rate", "channels"), [(44100, 1), (44100, 2), (16000, 2)])
def test_an_mp3_cut_out_of_a_longer_one(tmp_path, mode, rate, channels, capfd):
    samples = sound(30000, channels)
    samples[8000:16000] *= 0.001
    file = encode(samples, rate, format="MP3", bitrate_mode=mode, compression_level=0.8)
    starts = [place for place in range(len(file)) if file[place : place + 2] == file[:2]]
    tried = 0
    for number, start in enumerate(starts[1:9]):
        [path] = save(tmp_path, [file[start:]])
        try:
            ours = Audio([path])[0]
        except OSError:  # no frame begins there
            continue
        assert within(ours, theirs(path)), number
        tried += 1
    capfd.readouterr()  # mpg123 says much
    assert tried > 3


STRETCHES = [
    ({"start": 0, "frames": 1}, (0, 1)),
    ({"start": 1000, "frames": 3000}, (1000, 4000)),
    ({"start": 17280, "frames": 1152}, (17280, 18432)),
    ({"start": -100}, (-100, None)),
    ({"start": 40000}, (30000, 30000)),
    ({"offset": 1.0, "duration": 0.25}, (16000, 20000)),
]


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize(("named", "bounds"), STRETCHES)
def test_stretches_are_slices(tmp_path, container, named, bounds):
    [path] = save(tmp_path, [encode(sound(30000, 2), 16000, format=container)])
    expected = theirs(path)[:, slice(*bounds)]
    assert within(Audio([path], **named)[0], expected)
    assert within(Audio([path], mono=True, **named)[0], expected.mean(0))


@pytest.mark.parametrize("container", FORMATS)
def test_a_stretch_is_bit_for_bit_that_of_the_whole(tmp_path, container):
    [path] = save(tmp_path, [encode(sound(60000, 1), 24000, format=container)])
    whole = Audio([path])[0]
    for start in range(0, 60000, 4321):
        part = Audio([path], start=start, frames=700)[0]
        assert torch.equal(part, whole[:, start : start + 700])


def test_float64_holds_the_same_numbers(tmp_path):
    paths = save(tmp_path, [encode(sound(3000), format=container) for container in FORMATS])
    for path in paths:
        assert torch.equal(Audio([path], dtype="float64")[0], Audio([path])[0].double())
        with pytest.raises(OSError, match="no scale as int32"):
            Audio([path], dtype="int32")[0]


@pytest.mark.parametrize("num_workers", WORKERS)
def test_formats_mix_in_one_batch_and_with_other_columns(tmp_path, num_workers):
    formats = ["MP3", "OGG", "WAV", "FLAC"]
    files = [encode(sound(4000 + n, 2, n), format=formats[n % 4]) for n in range(24)]
    paths = save(tmp_path, files)
    dataset = [{"sound": theirs(path, frames=4000), "label": n} for n, path in enumerate(paths)]
    structure = {"sound": Audio(paths, frames=4000), "label": Rows(np.arange(24))}
    loader = fastload.Loader(fastload.Dataset(structure), batch_size=6, num_workers=num_workers)
    for ours, expected in zip(loader, DataLoader(dataset, batch_size=6), strict=True):
        assert within(ours["sound"], expected["sound"])
        assert torch.equal(ours["label"], expected["label"])


def test_an_mp3_without_checksums_that_is_cut_is_refused_or_what_soundfile_reads(tmp_path, capfd):
    file = without_tag(encode(sound(2500), 8000, format="MP3"))
    table = tally(formats.FORMATS["MP3"], tmp_path, cut(file))
    capfd.readouterr()
    assert table.read_alone == []
    assert table.differ == []
    assert table.equal > 0


@pytest.mark.parametrize(
    ("container", "words"),
    [("MP3", "damaged|announces|not a frame"), ("OGG", "damaged|missing|cut off")],
)
def test_the_error_names_the_file_and_the_next_batch_comes(tmp_path, container, words):
    files = [encode(sound(8000, 1, n), format=container) for n in range(3)]
    broken = bytearray(files[1])
    broken[len(broken) // 2] ^= 0x40
    files[1] = bytes(broken)
    batches = iter(fastload.Loader(Audio(save(tmp_path, files)), batch_size=1))
    assert next(batches).shape == (1, 1, 8000)
    with pytest.raises(OSError, match=rf"0001\.bin.*({words})"):
        next(batches)
    assert next(batches).shape == (1, 1, 8000)


def test_vorbis_of_more_channels_is_refused_with_words(tmp_path):
    [path] = save(tmp_path, [encode(sound(3000, 3), format="OGG")])
    with pytest.raises(OSError, match="3 channels; for Vorbis, one and two are supported"):
        Audio([path])


def test_a_tag_that_claims_more_frames_than_there_are_allocates_nothing(tmp_path):
    file = bytearray(encode(sound(3000), format="MP3"))
    place = max(file.find(b"Xing"), file.find(b"Info")) + 8
    file[place : place + 4] = b"\xff\xff\xff\xff"
    file[place + 146 : place + 148] = b"\0\0"  # no checksum of the tag
    [path] = save(tmp_path, [bytes(file)])
    with pytest.raises(OSError, match="announces 4294967295 frames, more than its"):
        Audio([path])
