"""The monitor of a training run: its steps, the waits for batches, memory, the machine, and what is wrong with them."""

from fastload.monitoring.monitor import Monitor
from fastload.monitoring.record import Finding, Steps, Window

__all__ = ["Finding", "Monitor", "Steps", "Window"]
