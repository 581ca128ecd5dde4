"""`TensorBoard`: windows for a `SummaryWriter`.

Uses `add_scalar` alone: `add_scalars` would open a file and start a thread for each name.
"""

from collections.abc import Sequence
from typing import Any

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures

__all__ = ["TensorBoard"]


class TensorBoard(Sink):
    """Writes figures as `fastload/NAME`, at the step and the time of their window.

    Args:
        writer: A `torch.utils.tensorboard.SummaryWriter`, or another object with its `add_scalar`. It stays the
            user's to close.
    """

    name = "TensorBoard"

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Adds the figures; none once the user has closed the writer, which would open a second file."""
        if getattr(self._writer, "all_writers", True) is None:
            return
        for name, value in figures(window, findings).items():
            self._writer.add_scalar(f"fastload/{name}", value, window.step, window.time_s)
