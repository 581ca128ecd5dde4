"""The order of experiments, within the time that there is.

Owns what is known at any moment: broken off, it still has the findings so far. Each experiment is another
file's; here it is decided which come, in which order, and how long each may take.
"""

from dataclasses import dataclass, field
from typing import Any

from fastload.tune import lanes, plan, samples, stages, storage
from fastload.tune import sweep as sizes
from fastload.tune.advice import advice
from fastload.tune.bench import Bench
from fastload.tune.findings import Demand, Findings
from fastload.tune.measure import Run
from fastload.tune.memory import plan_memory
from fastload.tune.others import Others
from fastload.tune.plan import Costs
from fastload.tune.samples import Making
from fastload.tune.target import TargetError
from fastload.tune.watch import WARN

__all__ = ["Asked", "Study"]

_BEYOND = 2
"""Native threads are tried up to so many times the processors: some of them wait for files."""


_BUSY = 0.15
"""Part of the processors that other programs may take before it is told."""


@dataclass(frozen=True)
class Asked:
    """What was asked for besides the settings.

    Attributes:
        batch_sizes: Sizes to sweep.
        accumulate: Batches of an optimiser's step.
    """

    batch_sizes: tuple[int, ...] = ()
    accumulate: int = 1


@dataclass
class Study:
    """The experiments on one target.

    Attributes:
        bench: Where they are made.
        asked: What for.
        known: What was found so far, by its name in `Findings`.
    """

    bench: Bench
    asked: Asked
    known: dict[str, Any] = field(default_factory=dict)
    _others: Others = field(default_factory=Others)

    def run(self) -> None:
        """Makes all experiments.

        Raises:
            TargetError: No batch could be made, or the step fails.
            MemoryRefused: The memory is full.
        """
        self._measure_step()
        if self.bench.target.is_native:
            self._native()
        else:
            self._python()
        if self.asked.batch_sizes:
            made = self.known.get("plan")
            asked = self.asked
            for found in sizes.sweep(self.bench, asked.batch_sizes, made, asked.accumulate):
                self.known["sweep"] = found

    def findings(self, *, interrupted: bool = False) -> Findings:
        """Returns what is known by now."""
        bench, target = self.bench, self.bench.target
        found = Findings(
            target=target.name,
            what=target.what,
            lane=target.choice.lane,
            why=target.choice.why,
            change=target.choice.change,
            host=bench.host,
            batch_size=target.batch_size,
            samples=target.samples,
            moments=tuple(bench.watch.moments),
            memory=self._memory(),
            warnings=tuple(self._warnings()),
            errors=bench.errors,
            error=bench.error,
            interrupted=interrupted,
            seconds=bench.deadline.passed_s,
            accumulate=self.asked.accumulate,
            **self.known,
        )
        return Findings(**{**vars(found), "advice": advice(found)})

    def _measure_step(self) -> None:
        step = self.bench.step
        if step is None:
            return
        self.bench.tell(f"the step alone: {step.name}")
        step.measure(self._batch(), min(1.5, self.bench.deadline.seconds / 20))
        rate = self.bench.target.batch_size / step.alone_s if step.alone_s else 0.0
        if rate:
            self.known["demand"] = Demand(step.name, 1e3 * step.alone_s, rate)

    def _batch(self) -> Any:
        """Returns a batch for the step, or none for a stand-in, which looks at none."""
        if self.bench.step is None or not self.bench.step.is_real:
            return None
        target = self.bench.target
        lane = "native" if target.is_native else "inline"
        iterator = iter(target.variant(lane, 1))
        for _ in range(100):
            try:
                return next(iterator)
            except StopIteration:
                break
            except Exception as error:
                failed = error
        else:
            words = (str(failed).strip().splitlines() or [""])[-1]
            msg = f"{target.name}: 100 batches in a row fail, the last with {type(failed).__name__}: {words}"
            raise TargetError(msg)
        msg = f"{target.name} has no batch: is it empty?"
        raise TargetError(msg)

    @property
    def _wanted(self) -> float | None:
        demand = self.known.get("demand")
        return demand.rate if demand is not None else None

    def _check(self, run: Run) -> None:
        """Refuses a target of which there is no batch."""
        if run.batches:
            return
        name = self.bench.target.name
        if run.errors:
            msg = f"{name}: every batch fails, the first with {run.error}"
            raise TargetError(msg)
        if run.overdue:
            msg = f"{name}: no batch in time; give it more --seconds, or smaller batches"
            raise TargetError(msg)
        msg = f"{name} has no batch: is it empty?"
        raise TargetError(msg)

    def _native(self) -> None:
        """Stages and threads, then storage, then the settings."""
        bench = self.bench
        most = max(1, round(_BEYOND * bench.host.host_cores / bench.host.ranks))
        runs: list[Run] = []
        counts = [each for each in (1, 2, 4, 8, 16, 32, 64, 128) if each <= most]
        for left, workers in enumerate(counts):
            share = bench.deadline.share(len(counts) - left + 10, 4.0)
            runs.append(bench.run("native", workers, share))
            if left == 0:
                self._check(runs[0])
            self.known["curves"] = stages.curves(runs, most)
            self._tabulate(stages.native(runs[0]), runs[-1])
        best = lanes.best_of(runs) or runs[0]
        share = bench.deadline.share(9, 4.0)
        self.known["storage"] = storage.compare(bench, best, share)
        costs = self._costs(runs[0])
        allowed = plan.limits(costs, bench.host.cores, bench.host.ranks)
        workers = plan.workers_for(costs, allowed, self._wanted)
        if self._wanted is None:
            workers = min(workers, max(self.known["curves"][0].knee, 1))
        known = () if bench.step is not None else tuple(runs)
        most = max(most, min(64, workers + 1))
        self._settle("native", workers, allowed, most, known)
        self._tabulate(stages.native(runs[0]), best)

    def _costs(self, one: Run) -> Costs:
        """Returns what a sample takes of one native thread."""
        found = self.known.get("storage")
        reads = one.work_ms.get("read", 0.0)
        return Costs(
            cpu_s=one.cpu_ms / 1e3,
            work_s=max(one.busy_ms, 1e-6) / 1e3,
            serial_s=one.taking_ms / 1e3,
            file_bytes=one.read_bytes or (found.file_bytes if found else 0.0),
            # Files that are in the page cache are not waited for.
            bytes_per_s=found.bytes_per_s if found and reads > one.busy_ms / 2 else None,
        )

    def _python(self) -> None:
        """Samples, then lanes, then storage, then the settings."""
        bench = self.bench
        bench.tell("making samples")
        making = samples.make(bench.target, bench.deadline.share(12, 4.0))
        if making is None:
            self._check(bench.run("inline", 0, bench.deadline.share(12, 4.0)))
            msg = f"{bench.target.name}: no sample can be made"
            raise TargetError(msg)
        work = stages.python(making)
        first = len(bench.runs)
        if bench.step is None:
            bench.step = lanes.stand_in(bench, making)
        for found in lanes.compare(bench, making, 14):
            self.known["lanes"] = found
        runs = bench.runs[first:]
        if not any(run.batches for run in runs):
            self._check(runs[0])
        chosen = next((cost.run for cost in found.costs if cost.chosen), runs[0])
        known = tuple(run for run in runs if run.lane == chosen.lane)
        self.known["curves"] = stages.curves([run for run in known if run.workers], 64)
        self._tabulate(work, chosen)
        share = bench.deadline.share(9, 4.0)
        self.known["storage"] = storage.compare(bench, chosen, share)
        costs = self._python_costs(making, chosen)
        allowed = plan.limits(costs, bench.host.cores, bench.host.ranks)
        most = lanes.counts(bench, chosen.lane)[-1]
        if chosen.lane == "inline":
            self.known["plan"] = plan.inline(chosen, allowed)
            self._tabulate(work, chosen)
            return
        workers = plan.workers_for(costs, allowed, self._wanted)
        self._settle(chosen.lane, workers, allowed, most, known, start=chosen.workers)
        self._tabulate(work, chosen)

    def _python_costs(self, making: Making, run: Run) -> Costs:
        found = self.known.get("storage")
        waits = making.sample_cpu_ms < making.sample_ms / 2
        return Costs(
            cpu_s=making.cpu_ms / 1e3,
            work_s=making.work_ms / 1e3,
            serial_s=run.taking_ms / 1e3 if run.lane != "inline" else 0.0,
            held_s=making.held_share * making.work_ms / 1e3 if run.lane == "threads" else 0.0,
            file_bytes=found.file_bytes if found else 0.0,
            bytes_per_s=found.bytes_per_s if found and waits else None,
        )

    def _settle(
        self,
        lane: str,
        workers: int,
        allowed: dict[str, float],
        most: int,
        known: tuple[Run, ...],
        start: int | None = None,
    ) -> None:
        """Verifies workers against their neighbours, then finds how far ahead is enough."""
        bench = self.bench
        made = plan.verified(bench, lane, workers, allowed, most, known=known, start=start, runs=8)
        self.known["plan"] = made
        self.known["plan"], self.known["depths"] = plan.deepened(bench, made, 4)

    def _tabulate(self, work_ms: dict[str, float], best: Run) -> None:
        made = self.known.get("plan")
        if made is not None:
            with_step = self.bench.step is not None
            tried = self.known.get("depths", ()) if with_step else made.tried
            alike = [run for run in tried if run.batches and run.workers == made.workers]
            same = [run for run in alike if run.depth == made.depth]
            best = (same or alike or [best])[-1]
        self.known["stages"] = stages.table(
            work_ms,
            cores=self.bench.host.cores,
            wanted=self._wanted,
            best=best,
        )

    def _memory(self) -> Any:
        bench = self.bench
        if not bench.watch.moments or not bench.runs:
            return None
        made = self.known.get("plan")
        lane = made.lane if made else bench.target.choice.lane
        return plan_memory(
            available_bytes=bench.host.rank_bytes,
            total_bytes=bench.host.memory_bytes,
            used_share=bench.watch.moments[0].share,
            ranks=bench.host.ranks,
            batch_bytes=max(run.batch_bytes for run in bench.runs),
            batch_size=bench.target.batch_size,
            workers=made.workers if made else max(1, int(bench.target.loader.num_workers)),
            worker_bytes=bench.watch.worker_bytes if lane == "process" else 0,
            accelerators=bench.host.accelerators,
        )

    def _warnings(self) -> list[str]:
        bench, words = self.bench, []
        if bench.errors:
            words.append(f"{bench.errors} batches were errors, the first {bench.error}")
        cores = self._others.cores()
        if cores > _BUSY * bench.host.host_cores:
            words.append(
                f"other programs kept {cores:.1f} of {bench.host.host_cores} processors busy meanwhile: "
                "alone, all rates would be higher"
            )
        fullest = max((moment.share for moment in bench.watch.moments), default=0.0)
        if fullest >= WARN:
            words.append(f"{fullest:.0%} of the memory was in use")
        if any(run.overdue for run in bench.runs):
            words.append("some runs were broken off, because a batch took far longer than the run")
        if bench.target.is_iterable:
            words.append(
                "an iterable dataset has its own number of workers here: others repeat its samples "
                "unless it shards itself"
            )
        return words
