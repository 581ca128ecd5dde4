"""Parquet files made by hand: what no writer makes, in few bytes."""

import struct

PLAIN, RLE, DELTA, DELTA_LENGTHS, DELTA_TEXTS, DICTIONARY = 0, 3, 5, 6, 7, 8
BOOLEAN, INT64, BYTE_ARRAY = 0, 2, 6
NONE, ZSTD = 0, 6


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def value(kind, content):
    """One value of Thrift's compact protocol; a struct is a dict of (type, content) by field."""
    if kind in (5, 6):
        return zigzag(content)
    if kind == 8:
        return varint(len(content)) + content
    if kind == 9:
        inner, items = content
        head = bytes([len(items) << 4 | inner]) if len(items) < 15 else None
        head = head or bytes([0xF0 | inner]) + varint(len(items))
        return head + b"".join(value(inner, item) for item in items)
    out, last = b"", 0
    for number, (field, item) in content.items():
        out += bytes([number - last << 4 | field]) + value(field, item)
        last = number
    return out + b"\0"


def page(body, count, encoding, *, is_dictionary=False, size=None):
    """A page of `size` bytes once decompressed."""
    fields = {1: (5, 2 if is_dictionary else 0), 2: (5, size or len(body)), 3: (5, len(body))}
    if is_dictionary:
        fields[7] = (12, {1: (5, count), 2: (5, encoding)})
    else:
        fields[5] = (12, {1: (5, count), 2: (5, encoding), 3: (5, RLE), 4: (5, RLE)})
    return value(12, fields) + body


def parquet(kind, count, data, dictionary=b"", codec=NONE, rows=None, fields=1, depth=0):
    """A file of one row group with one required column `a`, `depth` structs deep; its schema announces `fields`."""
    pages = dictionary + data
    column = {
        1: (5, kind), 2: (9, (5, [PLAIN])), 3: (9, (8, [b"a"])), 4: (5, codec), 5: (6, count),
        6: (6, len(pages)), 7: (6, len(pages)), 9: (6, 4 + len(dictionary)),
    }  # fmt: skip
    if dictionary:
        column[11] = (6, 4)
    chunk = {2: (6, 0), 3: (12, column)}
    rows = count if rows is None else rows
    group = {1: (9, (12, [chunk])), 2: (6, len(pages)), 3: (6, rows)}
    root = {4: (8, b"schema"), 5: (5, fields)}
    structs = [{3: (5, 0), 4: (8, b"s"), 5: (5, 1)}] * depth
    schema = [root, *structs, {1: (5, kind), 3: (5, 0), 4: (8, b"a")}]
    footer = value(12, {1: (5, 1), 2: (9, (12, schema)), 3: (6, rows), 4: (9, (12, [group]))})
    return b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def repeated(count, kind=INT64, entry=bytes(8)):
    """`count` times the one value of a dictionary."""
    dictionary = page(entry, 1, PLAIN, is_dictionary=True)
    return parquet(
        kind, count, page(b"\1" + varint(count << 1) + b"\0", count, DICTIONARY), dictionary
    )


def booleans(count):
    """A run of as many booleans."""
    run = varint(count << 1) + b"\1"
    return parquet(BOOLEAN, count, page(struct.pack("<I", len(run)) + run, count, RLE))


def deltas(count, first=0, least=0):
    """Numbers that all differ by `least`: blocks of 65536 without a bit for each."""
    blocks = -(-max(0, count - 1) // 65536)
    return (
        varint(65536) + varint(1) + varint(count) + zigzag(first) + (zigzag(least) + b"\0") * blocks
    )


def numbers(count):
    """Numbers without a bit for each."""
    return parquet(INT64, count, page(deltas(count), count, DELTA))


def growing(count):
    """Texts that are each the one before and a letter."""
    body = deltas(count, 0, 1) + deltas(count, 1) + b"x" * count
    return parquet(BYTE_ARRAY, count, page(body, count, DELTA_TEXTS))


def lengths(first, second=None):
    """A page of one text that announces more lengths: of what it shares with the one before, and of the rest."""
    body = deltas(first) + (b"" if second is None else deltas(second))
    encoding = DELTA_LENGTHS if second is None else DELTA_TEXTS
    return parquet(BYTE_ARRAY, 1, page(body + b"x", 1, encoding))
