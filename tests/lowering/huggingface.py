"""Hugging Face datasets for the tests, and what torch's DataLoader makes of them: the oracle."""

import functools
import warnings

from torch.utils.data import DataLoader

import fastload
from tests.shared.compare import assert_same
from tests.shared.sizes import SIZES

COUNT = 24
FORMATS = [None, "numpy", "torch"]


def column(feature, make, count=COUNT):
    """Returns a feature and the values of a column of it."""
    return feature, [make(index) for index in range(count)]


class _ById(dict):
    """Columns that are equal where they are the same objects."""

    def __hash__(self):
        return hash(tuple((name, id(made)) for name, made in self.items()))

    def __eq__(self, other):
        pairs = zip(self.items(), other.items(), strict=True)
        return len(self) == len(other) and all(a[0] == b[0] and a[1] is b[1] for a, b in pairs)


def table(columns, start=0, stop=COUNT):
    """Returns a dataset of named columns, as `column` returns them."""
    return _table(_ById(columns), start, stop)


@functools.cache  # its fingerprint takes 20 ms
def _table(columns, start, stop):
    from datasets import Dataset, Features

    features = Features({name: feature for name, (feature, _) in columns.items()})
    values = {name: values[start:stop] for name, (_, values) in columns.items()}
    return Dataset.from_dict(values, features=features)


def chunked(columns):
    """Returns the same dataset in several chunks, of which one has a single row."""
    return _chunked(_ById(columns))


@functools.cache
def _chunked(columns):
    from datasets import concatenate_datasets

    cuts = [(0, 5), (5, 6), (6, COUNT)]
    return concatenate_datasets([_table(columns, *cut) for cut in cuts])


def batches(kind, dataset, **arguments):
    """Returns what a loader gives, errors in their places."""
    found, iterator = [], iter(kind(dataset, **arguments))
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except (RuntimeError, TypeError) as error:
            found.append(f"{type(error).__name__}: {error}"[:60])


def theirs(dataset, **arguments):
    """Returns torch's batches."""
    with warnings.catch_warnings():  # torch's, of arrays that are read-only
        warnings.simplefilter("ignore")
        return batches(DataLoader, dataset, **arguments)


def same(dataset, **arguments):
    """Asserts that the native lane gives torch's batches and errors."""
    ours = batches(fastload.Loader, dataset, lane="native", **arguments, **SIZES)
    assert_same(ours, theirs(dataset, **arguments))
