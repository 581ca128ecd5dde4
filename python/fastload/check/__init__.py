"""Checking: reads a dataset once, and says which samples fail, how large they are, and of which shapes and dtypes.

`check` is for programs; the command is `python -m fastload.check`.
"""

from fastload.check.reading import check
from fastload.check.report import FailedSample, Field, Report

__all__ = ["FailedSample", "Field", "Report", "check"]
