"""The targets of a monitor: TensorBoard, W&B, mlflow, Prometheus, OpenTelemetry, a file, a function."""

from fastload.monitoring.sinks.resolve import resolve
from fastload.monitoring.sinks.sink import Sink
from fastload.monitoring.sinks.writer import Writer

__all__ = ["Sink", "Writer", "resolve"]
