"""The soak: fastload beside torch's loader for hours, with shuffled settings, and what it leaves behind.

A *round* is one loader with settings drawn from a seed, whose batches are compared with torch's own
(`plan`, `sources`, `rounds`, `oracle`). A *stretch* is a loader with fixed settings, run for some seconds so
that memory can be followed in bytes per batch (`steady`, `watch`, `verdict`). `runner` runs both in one
process; `__main__` starts that process, and reports where it dies. `planted` holds bugs on purpose, which
the soak must find.
"""
