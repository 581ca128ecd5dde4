"""What the tests of `Csv` share: tables that pandas reads, and columns beside its own."""

import io
import warnings

import pandas as pd
import torch

from ._compare import raw


def read(content, **named):
    """Returns what pandas reads, or None of what it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pd.read_csv(
                io.BytesIO(content), float_precision="round_trip", low_memory=False, **named
            )
        except (ValueError, pd.errors.ParserError):
            return None


def values(column):
    """Returns the samples of a column; None for those that are missing."""
    found = []
    for index in range(len(column)):
        try:
            found.append(column[index])
        except OSError as error:
            assert "missing, where text is expected" in str(error)  # noqa: PT017
            found.append(None)
    return found


def without(series, word):
    """Returns a series of pandas' with a word missing: it keeps words for what is missing where it gave up on numbers."""
    return series.mask(series.astype(object) == word)


def assert_is(column, series):
    """Asserts that a column has the type and the values of one of pandas'."""
    ours = values(column)
    assert len(ours) == len(series)
    if series.dtype.kind in "biuf" and len(series):
        theirs = torch.from_numpy(series.to_numpy().copy())
        ours = torch.stack(ours)
        assert ours.dtype == theirs.dtype
        assert torch.equal(raw(ours.nan_to_num(7e300)), raw(theirs.nan_to_num(7e300)))
        assert torch.equal(ours.isnan(), theirs.isnan())
    else:
        assert ours == [None if pd.isna(value) else value for value in series]


def same(ours, theirs):
    """Whether a table has the columns, types and values of one of pandas'."""
    try:
        assert list(ours.columns) == list(theirs.columns)
        for name, column in ours.columns.items():
            assert_is(column, theirs[name])
    except AssertionError:
        return False
    return True
