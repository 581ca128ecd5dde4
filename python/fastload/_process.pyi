"""The part of `_lib` that concerns the whole process. There is no such module."""

def pool_threads() -> int:
    """Returns how many native threads are alive now."""

def park() -> None:
    """Ends idle native threads now and waits until they are gone (before a fork)."""

def shutdown() -> None:
    """Stops the native threads for good, with a time limit; for interpreter exit."""

def memory_stats() -> dict[str, int]:
    """Returns bytes leased to tensors (`leased_bytes`) and kept for reuse (`idle_bytes`).

    And how many blocks were mapped so far, because none was there for reuse: `mapped_blocks`.
    """

def trim_memory() -> int:
    """Gives memory kept for reuse back to the system; returns how many bytes."""
