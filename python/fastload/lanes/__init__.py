"""The choice of a loader's lane, its explanation, and the start of its iterator."""

from fastload.lanes.choice import FEW_BATCHES, Choice, Lane, choose
from fastload.lanes.start import Settled, current_choice, start
from fastload.lanes.words import explain

__all__ = [
    "FEW_BATCHES",
    "Choice",
    "Lane",
    "Settled",
    "choose",
    "current_choice",
    "explain",
    "start",
]
