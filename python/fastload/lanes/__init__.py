"""The lanes: which of them a loader takes, and the words that explain it."""

from fastload.lanes.choice import WORKERS, Choice, Lane, check_workers, choose
from fastload.lanes.words import explain

__all__ = ["WORKERS", "Choice", "Lane", "check_workers", "choose", "explain"]
