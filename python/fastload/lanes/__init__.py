"""The choice of a loader's lane, its explanation, and the start of its iterator."""

from fastload.lanes.choice import Choice, Lane, choose, choose_if_long, was_left_early
from fastload.lanes.start import Settled, current_choice, start
from fastload.lanes.words import explain

__all__ = [
    "Choice",
    "Lane",
    "Settled",
    "choose",
    "choose_if_long",
    "current_choice",
    "explain",
    "start",
    "was_left_early",
]
