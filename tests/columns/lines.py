"""What the tests of `Jsonl` share: files of lines, and what is said of them."""

import json

import pytest


def write_lines(folder, lines, name="a.jsonl", end=b"\n"):
    """Writes a file of lines: bytes, text, or what JSON is made of."""

    def encoded(line):
        if isinstance(line, bytes):
            return line
        return (line if isinstance(line, str) else json.dumps(line)).encode()

    path = folder / name
    path.write_bytes(end.join(map(encoded, lines)) + end)
    return path


def loaded(path):
    """Returns what `json.loads` makes of each line that is not empty."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def refusal(sample, kind=OSError):
    """Returns what is said in place of a sample."""
    with pytest.raises(kind) as refused:
        sample()
    return str(refused.value)


def damaged(whole, flips):
    """Yields bytes cut at every place, and with flips of every byte."""
    for place in range(len(whole)):
        yield whole[:place]
        for flip in flips:
            yield whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
