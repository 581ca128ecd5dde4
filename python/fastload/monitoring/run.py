"""`Run`: what a monitor keeps of one training, and the thread that makes its windows.

Invariants: the training thread waits for nothing here; the thread keeps neither the monitor nor the loader alive; it
ends when the monitor is closed or gone, and at exit.
"""

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from typing import Any

import numpy as np

from fastload.machine.ranks import rank
from fastload.monitoring import sinks
from fastload.monitoring.accelerator import Accelerator
from fastload.monitoring.clocks import ahead_ns
from fastload.monitoring.detect import Context, History, drift_of, findings
from fastload.monitoring.figures import StepFigures
from fastload.monitoring.host import Host, Stops
from fastload.monitoring.intervals import Collections, Regions
from fastload.monitoring.loading import Loading, MonitoredLoader, settings_of, sizes_of
from fastload.monitoring.process import Footprint, limits_of
from fastload.monitoring.recent import Recent
from fastload.monitoring.record import Finding, Steps, Window
from fastload.monitoring.shortage import Shortage
from fastload.monitoring.stacks import StallSampler
from fastload.monitoring.stages import NAMES, Recordable, StageSpans
from fastload.monitoring.standing import Standing
from fastload.monitoring.steps import Iterating, Recorder
from fastload.monitoring.summary import Totals
from fastload.monitoring.trace import write_trace
from fastload.sizes import length_of

__all__ = ["Run"]

_log = logging.getLogger("fastload")

_EXIT_S = 2.0
_IN_EFFECT = ("workers", "depth", "fds", "fd_limit")  # figures that a summary lists as settings


class Run:
    """One training.

    Args:
        targets: The targets of windows.
        every_s: Length of a window, in seconds.
        stall_s: Shortest own time of a step whose stack is looked at, in seconds.
        accelerator: The device that the training uses, if any.

    Attributes:
        recorder: Its steps.
        regions: Its named regions.
        window: The last window; None before the first one.
        findings: The findings until then.
    """

    def __init__(
        self,
        targets: list[sinks.Sink],
        every_s: float,
        stall_s: float,
        accelerator: Accelerator | None,
    ) -> None:
        self._loading = Loading()
        self._lock = threading.Lock()  # of the counters that an iterator begins and a window reads
        self.recorder = Recorder(accelerator, self._end_epoch)
        self.regions = Regions(self.recorder)
        self.window: Window | None = None
        self.findings: list[Finding] = []
        self._settings: dict[str, Any] = {}
        self._recent = Recent()
        self._stages = StageSpans()
        self._totals = Totals()
        self._targets = targets
        self._every_s = every_s
        self._accelerator = accelerator
        self._collections = Collections()
        self._stalls = StallSampler(self.recorder, stall_s)
        self._figures = StepFigures(self.recorder)
        self._stops = Stops()
        self._history = History()
        self._shortage = Shortage()
        self._standing = Standing()
        self._logged: set[tuple[str, str]] = set()
        self._epoch_steps = 0
        self._loader: weakref.ref[Any] | None = None
        self._iterator: weakref.ref[Iterating] | None = None
        self._writer: sinks.Writer | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._pid = os.getpid()

    def follow(self, loader: Any, iterator: Any, start_s: float) -> None:
        """Records the steps of an iterator that has just been started.

        Args:
            loader: Its loader.
            iterator: The iterator; one that is not the library's is not recorded.
            start_s: Seconds that starting it took.
        """
        if not isinstance(iterator, Iterating):
            self._log_once(
                "a monitor records fastload's iterators, and not a %s", type(iterator).__name__
            )
            return
        if self._follows_another(loader):
            self._log_once("a monitor follows one loader at a time: a second one is not recorded")
            return
        before = None if self._iterator is None else self._iterator()
        if before is not None and before is not iterator:
            self._leave(before)
        if self.is_closed or os.getpid() != self._pid:
            self._leave(iterator)
            return
        with self._lock:
            self._loader, self._iterator = weakref.ref(loader), weakref.ref(iterator)
            self._loading.begin(loader)
        self._epoch_steps = length_of(loader) or 0
        sizes, taken = sizes_of(loader, iterator), iterator._num_yielded
        in_order = bool(loader.in_order)
        self.recorder.begin(start_s, *sizes, first_batch=taken, in_order=in_order)
        iterator._record_steps(self.recorder)
        if isinstance(iterator, Recordable):
            iterator._record_spans(self._stages, self.recorder.epoch)
        if self._thread is None:
            self._start(loader)

    def expect(self, loader: Any, iterator: Recordable) -> None:
        """Records the spans of an iterator's threads before it asks for a batch; `follow` comes later."""
        if not (self.is_closed or os.getpid() != self._pid or self._follows_another(loader)):
            iterator._record_spans(self._stages, self.recorder.epoch + 1)

    def _follows_another(self, loader: Any) -> bool:
        """Returns true if the iterator of another loader is in the middle of an epoch."""
        is_other = self._loader is not None and self._loader() is not loader
        is_alive = self._iterator is not None and self._iterator() is not None
        return is_other and is_alive and self.recorder.is_running

    def _leave(self, iterator: Any) -> None:
        """Records no more of an iterator."""
        iterator._record_steps(None)
        if isinstance(iterator, Recordable):
            iterator._record_spans(None, 0)

    def _log_once(self, message: str, *arguments: str) -> None:
        if (message, "") not in self._logged:
            self._logged.add((message, ""))
            _log.warning(message, *arguments)

    @property
    def is_closed(self) -> bool:
        """True if nothing more will be recorded."""
        return self._ending.is_set()

    def _end_epoch(self) -> None:
        if os.getpid() != self._pid:
            return  # the lock may be held by a thread that does not exist here
        with self._lock:
            self._loading.count()

    def end(self) -> None:
        """Has the thread make the last window and end; closes the sinks if no thread was started."""
        self._ending.set()
        if self._thread is None and os.getpid() == self._pid:
            while self._targets:
                with contextlib.suppress(Exception):
                    self._targets.pop().close()

    def close(self) -> None:
        """Makes the last window and waits until it is written, for some seconds at most; safe to call twice."""
        self.end()
        before = None if self._iterator is None else self._iterator()
        if before is not None:
            self._leave(before)
        thread = self._thread
        if thread not in (None, threading.current_thread()) and os.getpid() == self._pid:
            thread.join(2 * _EXIT_S)

    def summary(self) -> str:
        """Returns the summary of the run until the last window."""
        drift = drift_of(self._history)
        statement = "" if drift is None else drift.statement()
        scalars = {} if self.window is None else self.window.scalars
        now = {name: int(scalars[name]) for name in _IN_EFFECT if name in scalars}
        return self._totals.summary(self._settings | now, self.findings, statement)

    def trace(
        self, path: str | os.PathLike[str], torch_trace: str | os.PathLike[str] | None
    ) -> None:
        """Writes the latest windows, regions, garbage collections and spans of stages as a trace."""
        spans = [
            *self.regions.intervals.spans("regions"),
            *self._collections.intervals.spans("garbage collection"),
        ]
        windows = self._recent.windows()
        stages = self._stages.latest()
        write_trace(path, windows, spans, self.findings, stages=stages, torch_trace=torch_trace)

    @property
    def dropped(self) -> int:
        """The number of windows that were not written to all sinks."""
        return 0 if self._writer is None else self._writer.dropped

    def _start(self, loader: MonitoredLoader) -> None:
        self._settings = settings_of(loader)
        self._since_s = time.monotonic()
        self._collections.start()
        if self._targets:
            self._writer = sinks.Writer(self._targets, self._settings)
        self._thread = threading.Thread(target=self._loop, name="fastload monitor", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # before the finalizers of the sinks

    def _loop(self) -> None:
        try:
            self._host, self._footprint = Host(), Footprint()
            due_s = asleep_s = time.monotonic()
            window_s = due_s + self._every_s
            while not self._ending.wait(max(0.0, due_s - time.monotonic())):
                now_s = time.monotonic()
                # first, as long as this thread holds the interpreter: native code may just have given it up
                look_s = self._stalls.poll(now_s) if self.regions.depth == 0 else window_s
                self._stops.note(now_s - max(due_s, asleep_s), self.recorder.native_thread)
                if now_s >= window_s:
                    self._look()
                    window_s += self._every_s * (1 + (now_s - window_s) // self._every_s)
                due_s, asleep_s = min(window_s, look_s), time.monotonic()
            self._look()
        except Exception:  # a monitor must not end a training
            _log.exception("the monitor has failed and records nothing more")
        finally:
            self._ending.set()
            self._collections.close()
            atexit.unregister(self.close)
            if self._writer is not None:
                self._writer.close(_EXIT_S, self.summary())

    def _look(self) -> None:
        """Makes a window, looks for findings and hands both on."""
        window = self._made()
        self._history.add(window)
        self._recent.add(window)
        found = [*self._shortage.look(window), *findings(self._history, self._context())]
        found = self._standing.look(found, window.step)
        self.window, self.findings = window, found
        for finding in found:
            key = finding.kind, finding.owner
            if key not in self._logged:
                self._logged.add(key)
                _log.warning("%s (%s). %s", finding.what, finding.evidence, finding.advice)
        if self._writer is not None:
            self._writer.put(window, found)

    def _made(self) -> Window:
        """Returns the window since the last one."""
        recorded = self.recorder.read(self._totals.steps)
        now_s = time.monotonic()  # no step of the window ends later
        own_s = recorded.end_s - recorded.returned_s
        steps = Steps(
            number=np.arange(recorded.first, recorded.first + len(own_s)),
            end_s=recorded.end_s,
            wait_s=recorded.returned_s - recorded.asked_s,
            own_s=own_s,
            gc_s=self._collections.intervals.within(recorded.returned_s, recorded.end_s),
            region_s=self.regions.intervals.within(recorded.returned_s, recorded.end_s),
            rows=recorded.rows,
            epoch=recorded.epoch,
            batch=recorded.batch,
        )
        elapsed_s = max(now_s - self._since_s, 1e-9)
        self._since_s = now_s
        self._totals.add(steps, self.recorder.start_s)
        scalars = self._figures.read(steps, now_s) | self._of_loader(elapsed_s, steps)
        if self._iterator is None or self._iterator() is None:
            scalars.pop("open_step_s", None)  # its loop was left: the end of the step is not known
        scalars |= self._footprint.read(now_s) | self._host.read(now_s, self.recorder.native_thread)
        scalars["stopped_s"] = self._stops.passed_s()
        if self._accelerator is not None:
            scalars |= self._accelerator.read()
        return Window(
            step=self._totals.steps - 1,
            time_s=now_s - ahead_ns(time.time_ns) / 1e9,
            monotonic_s=now_s,
            rank=rank(),
            scalars=scalars,
            steps=steps,
        )

    def _of_loader(self, elapsed_s: float, steps: Steps) -> dict[str, float]:
        """Returns the figures of the loader; none if it is gone."""
        waits = dict(zip(NAMES, self._stages.waits(steps).sum(axis=0).tolist(), strict=True))
        loader = None if self._loader is None else self._loader()
        if loader is None:
            return {}
        with self._lock:
            return self._loading.read(loader, elapsed_s, waits, float(np.sum(steps.wait_s)))

    def _context(self) -> Context:
        """Returns the detectors' data besides the windows."""
        scalars = {} if self.window is None else self.window.scalars
        return Context(
            workers=int(scalars.get("workers", 0)),
            prefetch=int(scalars.get("depth", 0)),
            epoch_steps=self._epoch_steps,
            regions=self.regions.steps(),
            functions=self._stalls.functions,
            trackers=self._stalls.trackers,
            limits=limits_of(scalars),
        )
