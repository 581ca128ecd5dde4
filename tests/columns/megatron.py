"""Files as Megatron-LM writes them, and what NumPy reads of them."""

import struct

import numpy as np
import torch

CODES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float64", 7: "float32"}
CODES[8] = "uint16"


def index(lengths, dtype, boundaries=None, version=1, modes=b""):
    """The index of sequences, from the description in Megatron-LM."""
    [code] = [code for code, name in CODES.items() if name == np.dtype(dtype).name]
    pointers = np.cumsum([0, *lengths])[:-1] * np.dtype(dtype).itemsize
    boundaries = list(range(len(lengths) + 1) if boundaries is None else boundaries)
    return (
        b"MMIDIDX\0\0"
        + struct.pack("<QBQQ", version, code, len(lengths), len(boundaries))
        + np.array(lengths, "<i4").tobytes()
        + pointers.astype("<i8").tobytes()
        + np.array(boundaries, "<i8").tobytes()
        + modes
    )


def megatron(prefix, sequences, **named):
    """Writes the pair of files."""
    dtype = sequences[0].dtype if sequences else "uint16"
    prefix.with_suffix(".bin").write_bytes(b"".join(s.tobytes() for s in sequences))
    lengths = [len(sequence) for sequence in sequences]
    prefix.with_suffix(".idx").write_bytes(index(lengths, dtype, **named))
    return prefix


def read(prefix):
    """Reads the pair of files with NumPy."""
    content = prefix.with_suffix(".idx").read_bytes()
    if content[:9] != b"MMIDIDX\0\0" or len(content) < 34:
        msg = "no index"
        raise ValueError(msg)
    version, code, count, documents = struct.unpack_from("<QBQQ", content, 9)
    if version != 1:
        msg = "another version"
        raise ValueError(msg)
    lengths = np.frombuffer(content, "<i4", count, 34)
    pointers = np.frombuffer(content, "<i8", count, 34 + 4 * count)
    np.frombuffer(content, "<i8", documents, 34 + 12 * count)
    tokens = prefix.with_suffix(".bin").read_bytes()
    dtype = np.dtype(CODES[code])
    found = [
        np.frombuffer(tokens, dtype, n, at) if n or at > len(tokens) else np.empty(0, dtype)
        for n, at in zip(lengths.tolist(), pointers.tolist(), strict=True)
    ]
    wide = np.dtype("int64") if dtype.kind in "iu" else dtype
    return [torch.from_numpy(array.astype(wide)) for array in found]
