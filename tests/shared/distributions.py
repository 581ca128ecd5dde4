"""Two-sample tests of distributions: Kolmogorov and Smirnov's, and Pearson's chi-square."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

NORMAL_QUANTILE = 3.719
"""Of the standard normal distribution, 1 - 1e-4: what is drawn with fixed seeds passes once and for all."""


def assert_same_numbers(ours: Sequence[float], theirs: Sequence[float], what: str = "") -> None:
    """Asserts that numbers come from one distribution, of whatever kind."""
    first, second = np.sort(ours), np.sort(theirs)
    every = np.concatenate([first, second])
    shares = [np.searchsorted(each, every, "right") / len(each) for each in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    size = len(first) * len(second) / (len(first) + len(second))
    limit = math.sqrt(-math.log(1e-4 / 2) / 2 / size)
    assert distance < limit, f"{what}: the distributions differ by {distance:.4f}, over {limit:.4f}"


def assert_same_counts(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> None:
    """Asserts that labels are as frequent in one as in the other."""
    first, second = Counter(ours), Counter(theirs)
    total = {label: first[label] + second[label] for label in first | second}
    rare = [
        label
        for label in total
        if total[label] * min(len(ours), len(theirs)) < 10 * (len(ours) + len(theirs))
    ]
    rows = [(first[label], second[label]) for label in total if label not in set(rare)]
    if rare:
        rows.append((sum(first[label] for label in rare), sum(second[label] for label in rare)))
    share = math.sqrt(len(ours) / len(theirs))
    terms = [(a / share - b * share) ** 2 / (a + b) for a, b in rows if a + b]
    assert_chi_square(sum(terms), len(terms) - 1)


def assert_uniform(labels: Sequence[int], kinds: int) -> None:
    """Asserts that labels below `kinds` are equally frequent."""
    expected = len(labels) / kinds
    counts = np.bincount(np.asarray(labels), minlength=kinds)
    assert len(counts) == kinds
    assert_chi_square(float(((counts - expected) ** 2 / expected).sum()), kinds - 1)


def assert_chi_square(statistic: float, freedom: int) -> None:
    """Asserts that a statistic is not too large (Wilson and Hilferty, 1931)."""
    if freedom < 1:
        return
    part = 2 / (9 * freedom)
    limit = freedom * (1 - part + NORMAL_QUANTILE * math.sqrt(part)) ** 3
    assert statistic < limit, f"chi-square {statistic:.1f} over {limit:.1f} at {freedom} degrees"
