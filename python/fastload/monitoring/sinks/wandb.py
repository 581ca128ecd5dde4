"""`Wandb`: windows for a run of Weights & Biases."""

from collections.abc import Sequence
from typing import Any

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures

__all__ = ["Wandb"]


class Wandb(Sink):
    """Logs figures as `fastload/NAME` over `fastload/step`.

    They join the row that the user's next `run.log` ends. A row of their own would move the run's step, and W&B drops
    what is logged for a step that has passed. If several windows end before the user logs, the newest counts.

    Args:
        run: The run that `wandb.init` returned; the active run if None. It stays the user's to finish.

    Raises:
        ImportError: wandb is not installed.
        ValueError: No run is active.
    """

    name = "W&B"

    def __init__(self, run: Any = None) -> None:
        self._run = run = _active() if run is None else run
        run.define_metric("fastload/step", hidden=True)
        run.define_metric("fastload/*", step_metric="fastload/step")

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Adds the figures to the row in the making."""
        row = {f"fastload/{name}": value for name, value in figures(window, findings).items()}
        self._run.log({**row, "fastload/step": window.step}, commit=False)


def _active() -> Any:
    try:
        import wandb
    except ImportError as error:
        msg = "to='wandb' needs the package wandb: pip install wandb"
        raise ImportError(msg) from error
    if wandb.run is None:
        msg = "no run of W&B is active: call wandb.init() first"
        raise ValueError(msg)
    return wandb.run
