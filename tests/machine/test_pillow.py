"""Which Pillow is installed."""

import sys

import PIL
import pytest

from fastload.machine import pillow


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("9.5.0.post2", "pillow"),
        ("12.1.1", "pillow"),
        ("12.2.0", "pillow12.2"),
        ("13.0.0", "pillow13"),
        (None, "pillow13"),
    ],
)
def test_the_resize_is_that_of_the_module_and_not_of_a_distribution(monkeypatch, version, name):
    """Pillow-SIMD is a distribution of another name, and a conda package may have none."""
    if version is None:
        monkeypatch.setitem(sys.modules, "PIL", None)
    else:
        monkeypatch.setattr(PIL, "__version__", version)
    pillow._resize.cache_clear()
    try:
        assert pillow.kernel("bilinear") == (name, "bilinear")
    finally:
        pillow._resize.cache_clear()
