"""The judgement of error rates that a test has counted."""

from scipy.stats import binom

__all__ = ["assert_rate"]


def assert_rate(count: int, trials: int, *, most: float) -> None:
    """Fails if the count would be rarer than 1 in 1,000 at the highest rate that is claimed."""
    chance = binom.sf(count - 1, trials, most)
    assert chance > 1e-3, f"{count} of {trials}, at most {most:.3g} is claimed"
