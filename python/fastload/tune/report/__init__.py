"""The report: findings as one page for a browser, which asks nothing of anybody else."""

from fastload.tune.report.page import page

__all__ = ["page"]
