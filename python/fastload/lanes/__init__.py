"""The choice of a loader's lane, and its explanation."""

from fastload.lanes.choice import WORKERS, Choice, Lane, check_workers, choose
from fastload.lanes.words import explain

__all__ = ["WORKERS", "Choice", "Lane", "check_workers", "choose", "explain"]
