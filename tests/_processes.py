"""What tests that start worker processes have in common."""

import sys

import pytest

from ._compare import MANY_WORKERS

FORKS = pytest.mark.usefixtures("parked")
"""For tests that fork: threads of earlier ones are no business of the child."""

OUR_PROCESSES = [
    MANY_WORKERS,
    FORKS,
    pytest.mark.skipif(sys.platform != "linux", reason="torch's own queues elsewhere"),
]
"""For tests of the process lane of our own."""
