"""The threads lane: torch's workers as Python threads of the training process.

Owns what a thread needs in order to be a worker: its copies, its generators, its answer of
`get_worker_info()`. Invariant: nothing global is changed once the last thread has ended.
"""

from fastload.threads.iterator import ThreadIter

__all__ = ["ThreadIter"]
