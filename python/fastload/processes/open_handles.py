"""The resources that libraries hold open behind their objects: databases, archives, videos, and readers of files.

Owns the table of their classes, and finds out which objects are closed, or read memory. Two forked processes that use
one move its position, or mix what they send. Runs nothing of the user's; Arrow may read from a file.
"""

import contextlib
import gc
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from fastload.lowering.reading.attributes import all_stored

__all__ = ["open_handle", "reads_mapped_file"]

_PROCESS = "a process or a connection to one"
_HANDLES: dict[str, tuple[str, frozenset[str]]] = {
    library: (what, frozenset(classes))
    for library, what, *classes in (
        ("av", "a video", "Container", "InputContainer"),
        ("cv2", "a video", "VideoCapture"),
        ("decord", "a video", "AVReader", "AudioReader", "VideoReader"),
        ("duckdb", "a database", "DuckDBPyConnection"),
        ("grpc", "a connection", "Channel"),
        ("h5py", "an HDF5 file", "Dataset", "File", "Group"),
        ("lmdb", "a database", "Cursor", "Environment", "Transaction"),
        ("multiprocessing", _PROCESS, "Connection", "Pool", "Popen", "Process"),
        ("netCDF4", "a netCDF file", "Dataset", "Group"),
        ("openslide", "a slide", "OpenSlide"),
        ("osgeo", "a raster file", "Dataset"),
        ("psycopg", "a database", "Connection", "Cursor"),
        ("psycopg2", "a database", "connection", "cursor"),
        ("pysam", "a sequence file", "AlignmentFile", "FastaFile", "TabixFile", "VariantFile"),
        ("rasterio", "a raster file", "DatasetReader"),
        ("redis", "a connection", "Connection", "Redis"),
        ("socket", "a connection", "socket"),
        ("soundfile", "a sound file", "SoundFile"),
        ("sqlite3", "a database", "Blob", "Connection", "Cursor"),
        ("subprocess", "a process", "Popen"),
        ("tables", "an HDF5 file", "File", "Group"),
        ("tarfile", "an archive", "TarFile"),
        ("torch", "an archive", "PyTorchFileReader"),
        ("torchcodec", "a video", "AudioDecoder", "VideoDecoder"),
        ("wave", "a sound file", "Wave_read"),
        ("zipfile", "an archive", "ZipFile"),
    )
}
"""Libraries, what they open, and their classes that are open as long as they live, unless they were closed."""
_MAGIC = b"ARROW1"
"""The first bytes of a file of Arrow's format."""
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
"""The end of a shared library's name."""


def open_handle(thing: Any) -> str | None:
    """Returns the kind of resource that a library has opened behind an object."""
    for each in type(thing).__mro__:
        library = each.__module__.lstrip("_").partition(".")[0]
        if each is getattr(sys.modules.get("lmdb"), each.__name__, None):
            library = "lmdb"  # whose classes say that they are Python's own
        what, classes = _HANDLES.get(library, ("", frozenset()))
        if each.__name__ in classes:
            return None if _is_left_closed(thing) else f"{what} that is open"
        if library == "pyarrow" and _shares_position(thing):
            return "a reader, maybe of an open file, whose position workers would share"
    return None


def _shares_position(thing: Any) -> bool:
    """Returns true if an object of Arrow's reads on from an open file; false of memory, memory maps and paths.

    Of readers of Arrow's own format it is true: they do not tell what they read.
    """
    arrow, kind = sys.modules["pyarrow"], type(thing)
    if issubclass(kind, arrow.ipc.RecordBatchFileReader):
        return True
    if kind.__name__ in ("ParquetFile", "ORCFile"):
        sources = gc.get_referents(all_stored(thing).get("reader"))
        is_path = any(issubclass(type(each), str | PurePath) for each in sources)  # an ORC file's
        opened = all_stored(thing).get("_close_source", is_path) is False  # by the user
    else:
        opened = issubclass(kind, arrow.NativeFile) and not arrow.NativeFile.closed.__get__(thing)
        sources = [thing, *gc.get_referents(thing)]
    in_memory = io.BytesIO, arrow.BufferReader, arrow.MemoryMappedFile
    return opened and not any(issubclass(type(each), in_memory) for each in sources)


def reads_mapped_file(thing: Any) -> bool:
    """Returns true if an object is a reader of Arrow's file format whose batches lie in a file that is mapped.

    The reader does not tell what it reads. Where a file of that format is mapped, one batch is read: nothing is copied
    if it lies there.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not issubclass(type(thing), arrow.ipc.RecordBatchFileReader):
        return False
    try:
        mapped = list(_mapped_files())
        columns = thing.get_batch(0).columns if mapped else []
    except Exception:  # a system without that list, an empty or a damaged file
        return False
    buffers = [each for column in columns for each in column.buffers() if each]
    return bool(buffers) and all(
        any(start <= each.address < end for start, end in mapped) for each in buffers
    )


def _mapped_files() -> Iterator[tuple[int, int]]:
    """Yields where Arrow's files are mapped. Format: `/proc/pid/maps` of the kernel's documentation."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, _, _, _, inode, *path = line.split(maxsplit=5)
        if inode == "0" or not path or _LIBRARY.search(path[0]):  # libraries are most of them
            continue
        file = Path(path[0])
        with contextlib.suppress(OSError):
            if not file.is_file():
                continue
            with file.open("rb") as opened:
                if opened.read(len(_MAGIC)) == _MAGIC:
                    start, _, end = addresses.partition("-")
                    yield int(start, 16), int(end, 16)


def _is_left_closed(thing: Any) -> bool:
    """Returns true if an archive was closed, or an HDF5 object's file."""
    attributes = all_stored(thing)
    if "fp" in attributes:  # a zip file's
        return attributes["fp"] is None
    if attributes.get("closed") is True:  # a tar file's
        return True
    identity = attributes.get("_id")
    return identity is not None and type(identity).__module__.startswith("h5py.") and not identity
