"""Recordings for the tests, and what soundfile reads of them."""

import io
from pathlib import Path

import numpy as np
import soundfile
import torch


def sound(frames, channels=1, seed=0):
    """Tones with a little noise, `(frames, channels)`, within full scale."""
    time = np.arange(frames)[:, None] * np.arange(1, channels + 1)
    noise = np.random.default_rng(seed).standard_normal((frames, channels))
    return np.clip(np.sin(time * 0.05) * 0.4 + noise * 0.1, -1, 1)


def encode(samples, rate=16000, **named):
    """The bytes of a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **named)
    return file.getvalue()


def save(folder, files):
    """Writes one file for each run of bytes, under a name that says nothing."""
    paths = [Path(folder) / f"{number:04}.bin" for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file)
    return paths


def theirs(path, dtype="float32", **named):
    """What soundfile reads, as `(channels, frames)`."""
    samples, _ = soundfile.read(path, dtype=dtype, always_2d=True, **named)
    return torch.from_numpy(np.ascontiguousarray(samples.T))


def identical(ours, expected):
    """True if two tensors have the same dtype, shape and bits."""
    if ours.dtype != expected.dtype or ours.shape != expected.shape:
        return False
    return ours.numpy().tobytes() == expected.numpy().tobytes()


def within(ours, expected, tolerance=1e-4):
    """True if two tensors have the same dtype and shape and nearly the same values."""
    if ours.dtype != expected.dtype or ours.shape != expected.shape:
        return False
    return ours.numel() == 0 or float((ours - expected).abs().max()) <= tolerance
