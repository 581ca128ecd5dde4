"""The tuner: what a loader should be set to, found out while it runs.

`Online` measures and sets what is `Tuned`; the decision itself is native and knows only numbers. A `Profile` is where it may start.
"""

from fastload.tune.online import Change, Online, Settings
from fastload.tune.profile import Profile
from fastload.tune.tuned import Tuned

__all__ = ["Change", "Online", "Profile", "Settings", "Tuned"]
