"""The profile of what was found: settings to start from, and what they were measured on."""

from typing import Any

from fastload.tune.findings import Findings
from fastload.tune.fingerprint import Data
from fastload.tune.profile import Profile
from fastload.tune.target import Target

__all__ = ["recommended"]


def recommended(findings: Findings, target: Target) -> Profile | None:
    """Returns a profile; None where too little is known for one."""
    plan, memory = findings.plan, findings.memory
    if plan is None or plan.rate <= 0:
        return None
    lowered = target.choice.lowered
    program = lowered.program if lowered is not None and plan.lane == "native" else None
    return Profile(
        workers=plan.workers,
        depth=max(1, plan.depth),
        lane=plan.lane,
        memory_budget=memory.budget_bytes if memory is not None else None,
        pin_memory=memory.pin_memory if memory is not None else None,
        machine=findings.host.machine,
        data=Data.of(target.loader.dataset, program),
        measured=_measured(findings),
    )


def _measured(findings: Findings) -> dict[str, Any]:
    """Returns the numbers that the settings follow from."""
    plan = findings.plan
    assert plan is not None
    measured: dict[str, Any] = {
        "target": findings.target,
        "advice": findings.advice,
        "batch_size": findings.batch_size,
        "samples_per_s": plan.rate,
        "waiting": plan.waiting,
        "limits": dict(plan.limits),
        "ms_per_sample": {stage.name: stage.ms for stage in findings.stages},
        "tried": [{"workers": run.workers, "samples_per_s": run.rate} for run in plan.tried],
    }
    if findings.demand is not None:
        measured["step_ms"] = findings.demand.step_ms
    if findings.storage is not None:
        rates = {name: getattr(findings.storage, name) for name in ("cached", "warm", "cold")}
        measured["storage"] = {name: rate for name, rate in rates.items() if rate is not None}
    return measured
