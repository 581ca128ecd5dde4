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
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload.machine.ranks import rank
from fastload.monitoring import sinks
from fastload.monitoring.accelerator import Cuda
from fastload.monitoring.detect import Context, History, Standing, drift_of, findings, sentence_of
from fastload.monitoring.figures import StepFigures, Totals
from fastload.monitoring.host import Host, Stops
from fastload.monitoring.intervals import Collections, Regions
from fastload.monitoring.loading import Loading, settings_of, sizes_of, steps_of
from fastload.monitoring.process import Footprint
from fastload.monitoring.record import Finding, Steps, Window, ahead_ns
from fastload.monitoring.shortage import Shortage
from fastload.monitoring.stacks import StallSampler
from fastload.monitoring.stages import NAMES, StageSpans
from fastload.monitoring.steps import Accelerator, Recorder
from fastload.monitoring.trace import Recent, write_trace

__all__ = ["Run"]

_log = logging.getLogger("fastload")

_EXIT_S = 4.0  # longest wait for the thread, which waits half of that for the sinks
_FAILED = "the monitor has failed and records nothing more"
_IN_EFFECT = ("workers", "depth", "fds", "fd_limit")  # figures that a summary lists as settings


class Run:
    """One training; its arguments are those of `Monitor`.

    Attributes:
        recorder: Its steps.
        regions: Its named regions.
        window: The last window; None before the first one.
        findings: The findings until then.
    """

    def __init__(
        self, to: Any, every_s: float, stall_s: float, accelerator: Accelerator | None
    ) -> None:
        if accelerator is None and torch.version.cuda is not None:
            accelerator = Cuda()
        self._targets = sinks.resolve(to, rank())
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
        self._every_s = every_s
        self._accelerator = accelerator
        self._collections = Collections()
        self._stalls = StallSampler(self.recorder, stall_s)
        self._figures = StepFigures(self.recorder)
        self._stops = Stops()
        self._history = History()
        self._shortage = Shortage()
        self._standing = Standing()
        self._logged: set[object] = set()
        self._epoch_steps = 0
        self._loader = self._iterator = _gone  # weak references to what is followed
        self._writer: sinks.Writer | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._pid = os.getpid()

    def follow(self, loader: Any, iterator: Any, start_s: float) -> None:
        """Records the steps of an iterator that has just been started; an error ends the monitor.

        Args:
            loader: Its loader.
            iterator: The iterator; one that is not the library's is not recorded.
            start_s: Seconds that starting it took.
        """
        try:
            self._follow(loader, iterator, start_s)
        except Exception:
            _log.exception(_FAILED)
            self.end()
            self._leave(iterator)

    def _follow(self, loader: Any, iterator: Any, start_s: float) -> None:
        if not hasattr(iterator, "_record_steps"):
            kind = type(iterator).__name__
            message = "the monitor records nothing: iter(loader) returned a %s, not an iterator of fastload"
            self._log_once("kind", message, kind)
            return
        if self._follows_another(loader):
            message = "a monitor follows one loader at a time: a second one is not recorded"
            self._log_once("another", message)
            return
        before = self._iterator()
        if before is not iterator:
            self._leave(before)
        if self._is_over:
            self._leave(iterator)
            return
        with self._lock:
            self._loader, self._iterator = weakref.ref(loader), weakref.ref(iterator)
            self._loading.begin(loader)
        self._epoch_steps = steps_of(loader)
        self.recorder.begin(
            start_s,
            *sizes_of(loader, iterator),
            first_batch=iterator._num_yielded,
            in_order=bool(loader.in_order),
        )
        iterator._record_steps(self.recorder)
        if hasattr(iterator, "_record_spans"):
            iterator._record_spans(self._stages, self.recorder.epoch)
        if self._thread is None:
            self._start(loader)

    def expect(self, loader: Any, iterator: Any) -> None:
        """Records the spans of an iterator's threads before it asks for a batch; `follow` comes later."""
        if not (self._is_over or self._follows_another(loader)):
            iterator._record_spans(self._stages, self.recorder.epoch + 1)

    def leave(self) -> None:
        """Records no more of the iterator that is followed; one of another loader may follow."""
        self._leave(self._iterator())
        self._iterator = _gone

    def _follows_another(self, loader: Any) -> bool:
        """Returns true if the iterator of another loader is in the middle of an epoch."""
        is_alive = self._iterator() is not None
        return self._loader() is not loader and is_alive and self.recorder.is_running

    def _leave(self, iterator: Any) -> None:
        """Records no more of an iterator, if there is one."""
        if hasattr(iterator, "_record_steps"):
            iterator._record_steps(None)
        if hasattr(iterator, "_record_spans"):
            iterator._record_spans(None, 0)

    def _log_once(self, key: object, message: str, *arguments: str) -> None:
        if key not in self._logged:
            self._logged.add(key)
            _log.warning(message, *arguments)

    @property
    def is_closed(self) -> bool:
        """True if nothing more will be recorded."""
        return self._ending.is_set()

    @property
    def _is_forked(self) -> bool:
        """True in a forked child, where locks may be held by threads that do not exist."""
        return os.getpid() != self._pid

    @property
    def _is_over(self) -> bool:
        return self.is_closed or self._is_forked

    def _end_epoch(self) -> None:
        if self._is_forked:
            return
        with self._lock:
            self._loading.count()

    def end(self) -> None:
        """Has the thread make the last window and end; closes the sinks if no thread was started."""
        self._ending.set()
        if self._thread is None and not self._is_forked:
            while self._targets:
                with contextlib.suppress(Exception):
                    self._targets.pop().close()

    def close(self) -> None:
        """Makes the last window and waits until it is written, for some seconds at most; safe to call twice."""
        self.end()
        self._leave(self._iterator())
        thread = self._thread
        if thread not in (None, threading.current_thread()) and not self._is_forked:
            thread.join(_EXIT_S)

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

    def _start(self, loader: Any) -> None:
        self._settings = settings_of(loader)
        self._since_s = time.monotonic()
        self._collections.start()
        if self._targets:
            self._writer = sinks.Writer(self._targets, self._settings)
        thread = threading.Thread(target=self._loop, name="fastload monitor", daemon=True)
        thread.start()
        self._thread = thread
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
            _log.exception(_FAILED)
        finally:
            self._ending.set()
            self._collections.close()
            atexit.unregister(self.close)
            if self._writer is not None:
                self._writer.close(summary=self.summary())

    def _look(self) -> None:
        """Makes a window, looks for findings and hands both on."""
        window = self._made()
        self._history.add(window)
        self._recent.add(window)
        found = [*self._shortage.look(window), *findings(self._history, self._context(window))]
        found = self._standing.look(found, window.step)
        self.window, self.findings = window, found
        for finding in found:
            words = finding.what, finding.evidence, finding.advice
            self._log_once((finding.kind, sentence_of(finding)), "%s (%s). %s", *words)
        if self._writer is not None:
            self._writer.put(window, found)

    def _made(self) -> Window:
        """Returns the window since the last one."""
        steps = self.recorder.read(self._totals.steps)
        now_s = time.monotonic()  # no step of the window ends later
        returned_s = steps.end_s - steps.own_s
        steps = replace(
            steps,
            gc_s=self._collections.intervals.within(returned_s, steps.end_s),
            region_s=self.regions.intervals.within(returned_s, steps.end_s),
        )
        elapsed_s = max(now_s - self._since_s, 1e-9)
        self._since_s = now_s
        self._totals.add(steps, self.recorder.start_s)
        scalars = self._figures.read(steps, now_s) | self._of_loader(elapsed_s, steps)
        if self._iterator() is None:
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
        loader = self._loader()
        if loader is None:
            return {}
        with self._lock:
            return self._loading.read(loader, elapsed_s, waits, float(np.sum(steps.wait_s)))

    def _context(self, window: Window) -> Context:
        """Returns the detectors' data besides the windows."""
        return Context(
            workers=int(window.scalars.get("workers", 0)),
            is_native=self._loading.is_native,
            prefetch=int(window.scalars.get("depth", 0)),
            epoch_steps=self._epoch_steps,
            regions=self.regions.steps(),
            functions=self._stalls.functions,
        )


def _gone() -> Any:
    """Takes the place of a weak reference before there is one."""
    return None
