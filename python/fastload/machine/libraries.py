"""Tells the code of libraries from the user's."""

import os
import sysconfig
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).parent.parent) + os.sep
_LIBRARIES = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("platstdlib"),
    _HERE,
    "<frozen",
)
INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages."""


def is_library(file: str) -> bool:
    """Returns true if the code of a file belongs to Python, to this package, or to an installed one."""
    return file.startswith(_LIBRARIES) or any(name in file for name in INSTALLED)


def is_of_module(function: Any, names: dict[str, Any]) -> bool:
    """Returns true if a function has these globals, and the code of their module's file.

    Also true for a stub that this package has installed, and for a module without a source file.
    """
    if getattr(function, "__globals__", None) is not names:
        return False
    file, home = function.__code__.co_filename, names.get("__file__")
    return file == home or file.startswith(_HERE) or not str(home).endswith(".py")
