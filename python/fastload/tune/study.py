"""The experiments on one target: which ones, in which order, and how long each may take.

Owns what is known at any moment; interrupted, it still has the findings so far. Each experiment is another
module's.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from fastload.faults import one_line
from fastload.machine.memory import WARN
from fastload.tune import lanes, plan, stages, storage
from fastload.tune.bench import Bench
from fastload.tune.findings import Demand, Findings, advice
from fastload.tune.lanes import Making
from fastload.tune.machine import other_programs_cpu_s
from fastload.tune.measure import NOTHING_MS, Run
from fastload.tune.memory import MemoryPlan, plan_memory
from fastload.tune.plan import Costs
from fastload.tune.profile import Data, Profile
from fastload.tune.step import StandIn
from fastload.tune.sweep import sweep
from fastload.tune.target import TargetError

_MOST_PER_CORE = 2  # native threads to try, per core: some of them wait for files
_BUSY = 0.15  # share of the cores that other programs may use before a warning is given


@dataclass
class Study:
    """The experiments on one target."""

    bench: Bench  # where to measure
    batch_sizes: tuple[int, ...] = ()  # batch sizes to compare
    accumulate: int = 1  # batches per optimiser step
    found: Findings = field(init=False)  # the findings so far
    _other_cpu_s: float = field(default_factory=other_programs_cpu_s)

    def __post_init__(self) -> None:
        target = self.bench.target
        self.found = Findings(
            target=target.name,
            what=target.what,
            lane=target.choice.lane,
            why=target.choice.why,
            change=target.choice.change,
            host=self.bench.host,
            batch_size=target.batch_size,
            samples=target.samples,
            accumulate=self.accumulate,
        )

    def run(self) -> None:
        """Makes all experiments."""
        self._measure_step()
        if self.bench.target.is_native:
            self._tune_native()
        else:
            self._tune_python()
        if self.batch_sizes:
            assert self.found.plan is not None  # both have set it
            for found in sweep(self.bench, self.batch_sizes, self.found.plan, self.accumulate):
                self.found.sweep = found

    def findings(self, *, interrupted: bool = False) -> Findings:
        """Returns the findings so far."""
        bench = self.bench
        found = replace(
            self.found,
            moments=tuple(bench.watch.moments),
            memory=self._memory(),
            errors=sum(run.errors for run in bench.runs),
            error=next((run.error for run in bench.runs if run.error), ""),
            interrupted=interrupted,
            seconds=bench.deadline.passed_s,
        )
        return replace(found, advice=advice(found), warnings=tuple(self._warnings(found)))

    def profile(self, findings: Findings) -> Profile | None:
        """Returns the recommended settings and their measurements; None where too little is known."""
        found, memory, target = findings.plan, findings.memory, self.bench.target
        if found is None or found.rate <= 0:
            return None
        lowered = target.choice.lowered
        program = lowered.program if lowered is not None and found.lane == "native" else None
        measured: dict[str, Any] = {
            "target": findings.target,
            "advice": findings.advice,
            "batch_size": findings.batch_size,
            "samples_per_s": found.rate,
            "waiting": found.waiting,
            "limits": dict(found.limits),
            "ms_per_sample": {stage.name: stage.ms for stage in findings.stages},
            "tried": [{"workers": run.workers, "samples_per_s": run.rate} for run in found.tried],
        }
        if findings.demand is not None:
            measured["step_ms"] = findings.demand.step_ms
        if findings.storage is not None:
            rates = {name: getattr(findings.storage, name) for name in ("cached", "warm", "cold")}
            measured["storage"] = rates
        return Profile(
            workers=found.workers,
            depth=max(1, found.depth),
            lane=found.lane,
            memory_budget=memory.budget_bytes if memory is not None else None,
            pin_memory=memory.pin_memory if memory is not None else None,
            machine=findings.host.machine,
            data=Data.of(target.loader.dataset, program),
            measured=measured,
        )

    def _measure_step(self) -> None:
        step, target = self.bench.step, self.bench.target
        if step is None:
            return
        self.bench.display.doing(f"the step alone: {step.name}")
        batch = None if isinstance(step, StandIn) else self._batch()
        step.measure(batch, min(1.5, self.bench.deadline.seconds / 20))
        if 1e3 * step.alone_s >= NOTHING_MS * target.batch_size:
            rate = target.batch_size / step.alone_s
            self.found.demand = Demand(step.name, 1e3 * step.alone_s, rate)

    def _batch(self) -> Any:
        """Returns a batch of the target."""
        target = self.bench.target
        iterator = iter(target.variant("native" if target.is_native else "inline", 1))
        error: Exception | None = None
        for _ in range(100):
            try:
                return next(iterator)
            except StopIteration:
                break
            except Exception as caught:
                error = caught
        if error is None:
            msg = f"{target.name} has no batch: is it empty?"
        else:
            msg = f"{target.name}: every batch fails, the last with {one_line(error)}"
        raise TargetError(msg)

    def _check(self, run: Run) -> None:
        """Refuses a target without a batch."""
        name = self.bench.target.name
        if run.batches:
            return
        if run.errors:
            msg = f"{name}: every batch fails, the first with {run.error}"
        elif run.overdue:
            msg = f"{name}: no batch in time; give it more --seconds, or smaller batches"
        else:
            msg = f"{name} has no batch: is it empty?"
        raise TargetError(msg)

    @property
    def _wanted(self) -> float | None:
        return None if self.found.demand is None else self.found.demand.rate

    def _tune_native(self) -> None:
        """Measures threads and stages, then storage, then the settings."""
        bench = self.bench
        most = max(1, round(_MOST_PER_CORE * bench.host.host_cores / bench.host.ranks))
        runs: list[Run] = []
        counts = [each for each in (1, 2, 4, 8, 16, 32, 64, 128) if each <= most]
        for left, workers in enumerate(counts):
            share = bench.deadline.share(len(counts) - left + 10, 4.0)
            runs.append(bench.run("native", workers, share))
            self._check(runs[0])
            self.found.curves = stages.curves(runs, most)
            self._tabulate(stages.native(runs[0]), runs[-1])
        first, best = runs[0], lanes.best_of(runs) or runs[0]
        found = storage.compare(bench, best, bench.deadline.share(9, 4.0))
        self.found.storage = found
        costs = Costs(
            cpu_s=first.cpu_ms / 1e3,
            work_s=max(first.busy_ms, 1e-6) / 1e3,
            serial_s=first.taking_ms / 1e3,
            file_bytes=first.read_bytes or (found.file_bytes if found else 0.0),
            # a rate of storage limits only those who wait for it: files may be in the page cache
            bytes_per_s=found.bytes_per_s
            if found and first.work_ms.get("read", 0.0) > first.busy_ms / 2
            else None,
        )
        allowed = plan.limits(costs, bench.host.cores, bench.host.ranks)
        workers = plan.workers_for(costs, allowed, self._wanted)
        if self._wanted is None:
            workers = min(workers, max(self.found.curves[0].knee, 1))
        known = [] if bench.step is not None else runs
        most = max(most, min(64, workers + 1))
        self._settle(plan.verified(bench, "native", workers, allowed, most, known=known))
        self._tabulate(stages.native(first), best)

    def _tune_python(self) -> None:
        """Measures samples, then lanes, then storage, then the settings."""
        bench = self.bench
        bench.display.doing("making samples")
        making = lanes.make(bench.target, bench.deadline.share(12, 4.0))
        if making is None:
            self._check(bench.run("inline", 0, bench.deadline.share(12, 4.0)))
            msg = f"{bench.target.name}: no sample can be made"
            raise TargetError(msg)
        work_ms = stages.python(making)
        earlier = len(bench.runs)
        if bench.step is None:
            bench.step = lanes.stand_in(bench, making)
        for found in lanes.compare(bench, making):
            self.found.lanes = found
        runs = bench.runs[earlier:]
        if not any(run.batches for run in runs):
            self._check(runs[0])
        chosen = next((cost.run for cost in found.costs if cost.chosen), runs[0])
        known = [run for run in runs if run.lane == chosen.lane]
        self.found.curves = stages.curves([run for run in known if run.workers], 64)
        self._tabulate(work_ms, chosen)
        self.found.storage = storage.compare(bench, chosen, bench.deadline.share(9, 4.0))
        costs = self._python_costs(making, chosen)
        allowed = plan.limits(costs, bench.host.cores, bench.host.ranks)
        if chosen.lane == "inline":
            self.found.plan = plan.settled(chosen, 0, allowed, (chosen,))
        else:
            workers = plan.workers_for(costs, allowed, self._wanted)
            most = lanes.counts(bench, chosen.lane)[-1]
            start, lane = chosen.workers, chosen.lane
            settings = plan.verified(bench, lane, workers, allowed, most, known=known, start=start)
            self._settle(settings)
        self._tabulate(work_ms, chosen)

    def _python_costs(self, making: Making, run: Run) -> Costs:
        found = self.found.storage
        return Costs(
            cpu_s=making.cpu_ms / 1e3,
            work_s=making.work_ms / 1e3,
            serial_s=run.taking_ms / 1e3 if run.lane != "inline" else 0.0,
            held_s=making.held_share * making.work_ms / 1e3 if run.lane == "threads" else 0.0,
            file_bytes=found.file_bytes if found else 0.0,
            bytes_per_s=found.bytes_per_s if found and making.waits else None,
        )

    def _settle(self, settings: plan.Plan) -> None:
        """Finds how many batches ahead suffice for the workers that were found."""
        self.found.plan = settings
        self.found.plan, self.found.depths = plan.deepened(self.bench, settings)

    def _tabulate(self, work_ms: dict[str, float], best: Run) -> None:
        """Makes the table of stages, for the run that is nearest to the settings."""
        settings = self.found.plan
        if settings is not None:
            tried = settings.tried if self.bench.step is None else self.found.depths
            alike = [run for run in tried if run.batches and run.workers == settings.workers]
            same = [run for run in alike if run.depth == settings.depth]
            best = (same or alike or [best])[-1]
        self.found.stages = stages.table(
            work_ms, cores=self.bench.host.cores, wanted=self._wanted, best=best
        )

    def _memory(self) -> MemoryPlan | None:
        bench = self.bench
        if not bench.watch.moments or not bench.runs:
            return None
        settings = self.found.plan
        lane = settings.lane if settings else bench.target.choice.lane
        workers = settings.workers if settings else max(1, int(bench.target.loader.num_workers))
        return plan_memory(
            available_bytes=bench.host.rank_bytes,
            total_bytes=bench.host.memory_bytes,
            used_share=bench.watch.moments[0].share,
            ranks=bench.host.ranks,
            batch_bytes=max(run.batch_bytes for run in bench.runs),
            batch_size=bench.target.batch_size,
            workers=workers,
            worker_bytes=bench.watch.worker_bytes if lane == "process" else 0,
            accelerators=bench.host.accelerators,
        )

    def _warnings(self, found: Findings) -> list[str]:
        words, cores = [], found.host.host_cores
        if found.errors:
            raises = self.bench.target.loader.on_error == "raise"
            what = "batches were errors" if raises else "samples or batches were errors"
            words.append(f"{found.errors} {what}, the first {found.error}")
        busy = (other_programs_cpu_s() - self._other_cpu_s) / max(found.seconds, 1e-9)
        if busy > _BUSY * cores:
            words.append(
                f"other programs kept {busy:.1f} of {cores} cores busy during the measurement: "
                "without them all rates would be higher"
            )
        fullest = max((moment.share for moment in found.moments), default=0.0)
        if fullest >= WARN:
            words.append(f"{fullest:.0%} of the memory was in use")
        if any(run.overdue for run in self.bench.runs):
            words.append("some runs were stopped because a batch took far longer than the run")
        if self.bench.target.is_iterable:
            words.append(
                "an iterable dataset is measured with its own number of workers: another number "
                "repeats its samples unless it shards itself"
            )
        return words
