"""Decodes images that native code refuses, with Pillow or torchvision, in a thread of its own.

Owns the thread that serves an iterator and the choice of the library.
"""

import functools
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

from fastload import _lib
from fastload.faults import fault_of
from fastload.images import torchvision_io
from fastload.machine import pillow

__all__ = ["decode", "decoder", "server"]

_log = logging.getLogger("fastload")

Pixels = tuple[bytes, tuple[int, int, int]]


def decoder() -> Callable[[str | bytes, str], Pixels] | None:
    """Returns the function that decodes files that native code refuses; None without Pillow."""
    return decode if pillow.is_installed() else None


def decode(source: str | bytes, mode: str) -> Pixels:
    """Decodes a file, given by its path or its bytes, with the library that a mode of `_lib.Image` names.

    Returns:
        The pixels, row after row, and (height, width, channels).

    Raises:
        Exception: The library's own, with a note that names the file.
    """
    return _library(mode)(source, mode)


def _library(mode: str) -> Callable[[str | bytes, str], Pixels]:
    return torchvision_io.decode if mode.startswith("torchvision ") else pillow.decode


def server(loader: Any) -> Callable[[_lib.Requests, str], None] | None:
    """Returns the function that starts an iterator's decoding thread; None without Pillow.

    The thread keeps neither the iterator nor the loader alive. It is a daemon, so that the interpreter's exit
    does not wait for a file of any size.
    """
    return functools.partial(_start, weakref.ref(loader)) if decoder() else None


_told: set[int] = set()
"""Loaders, by identity, whose thread was logged."""


def _start(loader: "weakref.ref[Any]", requests: _lib.Requests, why: str) -> None:
    thread = threading.Thread(target=_serve, args=(requests,), name="fastload-decode", daemon=True)
    thread.start()
    alive = loader()
    if alive is not None and id(alive) not in _told:
        _told.add(id(alive))
        weakref.finalize(alive, _told.discard, id(alive)).atexit = False
        _log.info("a Python thread decodes the files that native code refuses: %s", why)


def _serve(requests: _lib.Requests) -> None:
    """Answers requests until their stream is closed."""
    for request in requests:
        try:
            pixels, shape = _library(request.mode)(request.source, request.mode)
        except BaseException as error:
            is_for_python = isinstance(error, NotImplementedError)  # which makes the batch instead
            fault = "unsupported" if is_for_python else fault_of(error)
            request.fail(_from_decode(error), fault)
        else:
            request.answer(pixels, shape)
            del pixels


def _from_decode(error: BaseException) -> BaseException:
    """Takes the frame that waits for requests off a traceback."""
    frames = error.__traceback__
    return error.with_traceback(frames.tb_next if frames else None)
