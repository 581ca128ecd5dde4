"""Tells the code of libraries from the user's."""

import sysconfig
from pathlib import Path

_LIBRARIES = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("platstdlib"),
    str(Path(__file__).parent.parent),  # ours
    "<frozen",
)
INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages."""


def is_library(file: str) -> bool:
    """Returns true if the code of a file belongs to Python, to this package, or to an installed one."""
    return file.startswith(_LIBRARIES) or any(name in file for name in INSTALLED)
