"""The machine that a loader runs on: CPUs, control groups, memory, ranks, the interpreter, Pillow. Knows nothing of data or loaders."""
