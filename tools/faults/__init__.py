"""Injected faults: every failure that a system call can have, in every lane, one after the other.

`python -m tools.faults` runs a loader in a process of its own, whose system calls this process may let fail.
For each fault the n-th call fails, n = 1, 2, ... until an epoch makes fewer calls than that. After each
failure the next batch or the next epoch must come, equal to the one that a plain loop makes; the error
must name what failed; and nothing may be left behind. Linux only, on x86-64 and aarch64; needs no root.
"""
