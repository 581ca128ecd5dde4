"""The choice of a loader's lane, and its explanation."""

from fastload.lanes.choice import Choice, Lane, choose
from fastload.lanes.words import explain

__all__ = ["Choice", "Lane", "choose", "explain"]
