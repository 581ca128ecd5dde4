"""The part of `_lib` that decides on workers and depth. There is no such module."""

from collections.abc import Callable
from typing import final

@final
class Window:
    """Measurements over a stretch of an epoch: means for a batch, in seconds, unless said otherwise.

    Args:
        elapsed_s: Its length.
        batches: Batches taken.
        samples: Samples in them.
        step_s: The training's own time for a batch: from the return of `next` to the next call; the median.
        wait_s: The time that the training waited for a batch.
        work_s: The time that workers spent on a batch, computing or waiting for files.
        cpu_s: CPU time of it.
        queued_s: Time of it waiting for a free CPU.
        tail_s: The time by which the slowest batches took longer than the mean.
        least_ready: Fewest batches that `next` found ready.
        most_ready: Most of them.
        batch_bytes: Bytes of a batch; the largest.
        worker_bytes: Memory that a worker takes by itself, in bytes; 0 for threads.
        memory_share: Part of the memory that this process may use which is used, 0 to 1.
    """

    def __new__(
        cls,
        *,
        elapsed_s: float,
        batches: float,
        samples: float,
        step_s: float,
        wait_s: float,
        work_s: float,
        cpu_s: float = 0.0,
        queued_s: float = 0.0,
        tail_s: float = 0.0,
        least_ready: float = 0.0,
        most_ready: float = 0.0,
        batch_bytes: float = 0.0,
        worker_bytes: float = 0.0,
        memory_share: float = 0.0,
    ) -> Window: ...
    @property
    def elapsed_s(self) -> float: ...
    @property
    def batches(self) -> float: ...
    @property
    def step_s(self) -> float: ...
    @property
    def wait_s(self) -> float: ...
    @property
    def rate(self) -> float:
        """Samples per second."""
    @property
    def bottleneck(self) -> str:
        """The bottleneck of the loader, in words."""
    @property
    def interpreter_share(self) -> float:
        """The share of the time in which the loader's threads held the interpreter, 0 to 1."""
    def joined(self, later: Window) -> Window:
        """Returns this window and one of the same settings after it as one."""
    def beside(
        self,
        *,
        queued_s: float = 0.0,
        free_bytes: float = ...,
        memory_stall: float = 0.0,
        throttled: float = 0.0,
    ) -> Window:
        """Returns this window with what the machine said meanwhile.

        Args:
            queued_s: Seconds for which workers could have run but no CPU was free.
            free_bytes: Memory that may still be taken; without end unless given.
            memory_stall: Share of the time in which all tasks stalled on memory, 0 to 1.
            throttled: Share of the time in which a quota throttled this process, 0 to 1.
        """

@final
class Tuner:
    """Decides how many workers a loader has, and how many batches are in flight.

    The same windows, in the same order, give the same answers.

    Args:
        cores: CPUs that this process may fill.
        most_workers: Most workers.
        most_depth: Most batches in flight.
        budget_bytes: Bytes that batches in flight may take.
        whole_batches: True if a batch is made by one worker alone.
        workers_are_fixed: True if the number of workers is the user's.
        depth_is_fixed: True if the depth is the user's.
        is_known: True if the first settings were found before: nothing but trials leads away from them.
    """

    def __new__(
        cls,
        *,
        cores: float,
        most_workers: int,
        most_depth: int,
        budget_bytes: int,
        whole_batches: bool,
        workers_are_fixed: bool,
        depth_is_fixed: bool,
        is_known: bool = False,
    ) -> Tuner: ...
    def next(self, window: Window, workers: int, depth: int) -> tuple[int, int, str, str, bool]:
        """Returns the next settings after a window with these.

        Returns:
            Workers, depth, the reason, the effect of the last change (empty where none was judged), and true
            if that is worth logging.
        """
    def rearm(self) -> None:
        """Resumes trials, as at the start of an epoch, if the settings were settled some minutes ago."""

@final
class Watch:
    """A call that is due after some time and some batches."""

    def __new__(cls) -> Watch: ...
    def set(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Has `look` called once, by a `tick`, in place of any other.

        Args:
            seconds: The least delay from now.
            batches: After how many further batches, at the earliest.
            look: The function that is called.
        """

    def tick(self) -> bool:
        """Counts a batch, and calls the function if it is due; returns true if it was.

        Raises:
            Exception: The error of the call.
        """
