"""`Mlflow`: windows for a run of mlflow."""

import re
from collections.abc import Sequence
from typing import Any

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures, renamed

__all__ = ["Mlflow"]

_ODD = re.compile(r"[^\w.\- :/]", re.ASCII)
_LONGEST = 250  # characters of a metric's name, with `fastload/`


class Mlflow(Sink):
    """Logs figures as metrics `fastload/NAME`, one request per window.

    Args:
        run_id: Id of the run; the active run of the calling thread if empty.
        client: An `MlflowClient`; one for the tracking server in use unless given.

    Raises:
        ImportError: mlflow is not installed.
        ValueError: No run is active.
    """

    name = "mlflow"

    def __init__(self, run_id: str = "", client: Any = None) -> None:
        try:
            import mlflow
            from mlflow.entities import Metric
        except ImportError as error:
            msg = "to='mlflow' needs the package mlflow: pip install mlflow"
            raise ImportError(msg) from error
        if not run_id:
            run = mlflow.active_run()
            if run is None:
                msg = "no run of mlflow is active: call mlflow.start_run() first, or name one, as to='mlflow:RUN_ID'"
                raise ValueError(msg)
            run_id = run.info.run_id
        self._metric = Metric
        self._client = mlflow.MlflowClient() if client is None else client
        self._run_id = run_id

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Logs the figures at the step and the time of their window."""
        found = figures(window, findings)
        names = renamed(found, _clean)
        at = round(window.time_s * 1000)
        metrics = [
            self._metric(f"fastload/{names[name]}", value, at, window.step)
            for name, value in found.items()
        ]
        self._client.log_batch(self._run_id, metrics=metrics, synchronous=True)


def _clean(name: str) -> str:
    """Returns a name that mlflow allows: few characters, and no path that has a shorter form."""
    parts = [part for part in _ODD.sub("_", name).split("/") if part.strip(".")]
    return "/".join(parts)[: _LONGEST - len("fastload/") - 4].rstrip("/") or "_"
