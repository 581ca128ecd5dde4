"""`Cuda`: for how long the device has no work while the training waits, its memory, and what slows it.

It initialises nothing: until the training uses CUDA, it knows nothing.
"""

import contextlib
import importlib
from collections.abc import Mapping
from typing import Any

import torch

__all__ = ["Cuda"]

_MEMORY = {
    "allocated_bytes.all.current": "cuda_allocated_bytes",
    "reserved_bytes.all.current": "cuda_reserved_bytes",
    "inactive_split_bytes.all.current": "cuda_inactive_bytes",
    "num_alloc_retries": "cuda_alloc_retries",
}

# Bits of `nvmlDeviceGetCurrentClocksEventReasons`; nvml.h.
_REASONS = {
    "gpu_power_capped": 0x4,
    "gpu_hardware_slowdown": 0x8,
    "gpu_thermal_slowdown": 0x20 | 0x40,
}


class Cuda:
    """An `Accelerator`: the CUDA device and stream that the training thread uses when it asks for a batch."""

    def __init__(self) -> None:
        self._marks: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        self._device: int | None = None
        self._nvml: _Nvml | None = None

    def begin_wait(self) -> bool:
        """Records an event, except while a graph is captured, where it would become part of the graph."""
        if not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():  # type: ignore[no-untyped-call]
            return False
        device = torch.cuda.current_device()
        if self._marks is None or device != self._device:  # an event belongs to one device
            self._device, self._nvml = device, None
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            self._marks = begin, end
        self._marks[0].record()
        return True

    def end_wait(self) -> None:
        """Records the other event."""
        if self._marks is not None:
            self._marks[1].record()

    def idle_s(self) -> float | None:
        """Returns the time between the events, by the device's clock.

        The device passes the first when its queue is empty, and the second when it is recorded or, if the queue
        was not empty then, right after the first.
        """
        if self._marks is None or not self._marks[1].query():  # type: ignore[no-untyped-call]
            return None
        return self._marks[0].elapsed_time(self._marks[1]) / 1e3  # type: ignore[no-any-return]

    def read(self) -> Mapping[str, float]:
        """Returns the memory of the allocators and the reasons of NVML, where nvidia-ml-py is installed."""
        if self._device is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return {}
        stats = torch.cuda.memory_stats(self._device)
        figures = {name: float(stats[key]) for key, name in _MEMORY.items() if key in stats}
        properties = torch.cuda.get_device_properties(self._device)
        figures["cuda_limit_bytes"] = float(properties.total_memory)
        if hasattr(torch.cuda, "host_memory_stats"):
            # how much of it is in use is not known: up to 2.11 that figure only grows (pytorch/pytorch#179380, #182404)
            host = torch.cuda.host_memory_stats()
            if "allocated_bytes.current" in host:
                figures["pinned_bytes"] = float(host["allocated_bytes.current"])
        if self._nvml is None:
            self._nvml = _Nvml(self._device)
        return figures | self._nvml.reasons()


class _Nvml:
    """The reasons for which a device runs at a lower clock; none without nvidia-ml-py or its driver."""

    def __init__(self, device: int) -> None:
        self._module: Any = None
        with contextlib.suppress(Exception):  # the package, the driver or the device may be missing
            module = importlib.import_module("pynvml")
            module.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            self._handle = module.nvmlDeviceGetHandleByUUID(uuid)
            self._module = module

    def reasons(self) -> dict[str, float]:
        if self._module is None:
            return {}
        with contextlib.suppress(Exception):  # the device may be lost
            bits = self._module.nvmlDeviceGetCurrentClocksEventReasons(self._handle)
            return {name: float(bool(bits & mask)) for name, mask in _REASONS.items()}
        return {}
