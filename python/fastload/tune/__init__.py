"""Tuning: what a loader's settings should be, found while it runs or by `python -m fastload.tune`.

`Online` measures and sets what is `Tuned`. A `Profile` holds settings to start from.
"""

from fastload.tune.online import Change, Online, Settings, Tuned
from fastload.tune.profile import Profile

__all__ = ["Change", "Online", "Profile", "Settings", "Tuned"]
