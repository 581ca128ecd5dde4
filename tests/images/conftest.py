"""Fixtures of the tests about images."""

from collections.abc import Iterator

import pytest

from .foreign import assert_no_threads


@pytest.fixture
def no_foreign_thread() -> Iterator[None]:
    """Has a test leave no thread in which Pillow decodes: each ends with its iterator."""
    yield
    assert_no_threads()
