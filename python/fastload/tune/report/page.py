"""The page: what was found, in one file with its style and its pictures.

Owns the order and the words. Every text from outside is escaped. Invariant: the page asks for nothing, neither
from another host nor from another file.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from fastload.tune.findings import Findings, Plan
from fastload.tune.memory import MemoryPlan
from fastload.tune.report.chart import svg
from fastload.tune.report.curves import Figure, figures
from fastload.tune.table import (
    arguments,
    depths,
    fit_words,
    lanes,
    python_words,
    sweep,
    sweep_words,
)
from fastload.tune.units import ms, number, size

__all__ = ["page"]


def page(findings: Findings) -> str:
    """Returns the report as HTML."""
    style = files("fastload.tune.report").joinpath("style.css").read_text(encoding="utf-8")
    title = f"fastload: {escape(findings.target)}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>",
            f"<style>\n{style}</style></head>",
            "<body><main>",
            *_head(findings),
            *_figures(list(figures(findings))),
            *_sections(findings),
            *_foot(findings),
            "</main></body></html>",
            "",
        ]
    )


def _head(findings: Findings) -> Iterator[str]:
    yield '<header><p class="brand">fastload <span>tune</span></p>'
    yield f"<h1>{escape(findings.target)}</h1>"
    yield f'<p class="what">{escape(findings.what)}</p></header>'
    if findings.interrupted:
        yield '<p class="warning">Interrupted: this is what was known by then.</p>'
    for words in findings.warnings:
        yield f'<p class="warning">{escape(_sentence(words))}</p>'
    yield f'<p class="advice">{escape(_sentence(findings.advice))}</p>'
    yield '<section class="facts">'
    for name, value, more in _facts(findings):
        yield (
            f'<div class="fact"><span class="name">{escape(name)}</span>'
            f'<span class="value">{escape(value)}</span>'
            f'<span class="more">{escape(more)}</span></div>'
        )
    yield "</section>"


def _facts(findings: Findings) -> Iterator[tuple[str, str, str]]:
    found, host = findings.plan, findings.host
    if found is not None:
        wanted = (
            f"of {number(findings.demand.rate)} wanted"
            if findings.demand
            else "as many as it makes"
        )
        yield "samples per second", number(found.rate), wanted
        yield "workers", str(found.workers), f"{found.lane}, {found.depth} batches ahead"
        if findings.demand is not None:
            yield (
                "training waits",
                f"{found.waiting:.1%}",
                f"step of {ms(findings.demand.step_ms)} ms",
            )
    whole = next((row for row in findings.stages if row.name == "all of loading"), None)
    if whole is not None:
        yield "cores needed", f"{whole.cores:.2g}", f"of {host.cores:g} for a rank"
    held = max((moment.used_bytes for moment in findings.moments), default=0)
    if held:
        yield "memory held", size(held), f"of {size(host.memory_bytes)}"


def _figures(found: Sequence[Figure]) -> Iterator[str]:
    yield '<section class="figures">'
    for place, figure in enumerate(found):
        wide = place == len(found) - 1 and len(found) % 2 == 1
        yield f"<figure{' class=wide' if wide else ''}><figcaption><h2>{escape(figure.heading)}</h2>"
        yield f"<p>{escape(figure.note)}</p></figcaption>"
        yield svg(figure.chart, wide=wide)
        names = [series for series in figure.chart.series if len(figure.chart.series) > 1]
        if names:
            yield '<p class="legend">'
            for series in names:
                dashed = " dashed" if series.dashed else ""
                yield (
                    f'<span><i class="{series.kind} c{series.colour}{dashed}"></i>'
                    f"{escape(series.name)}</span>"
                )
            yield "</p>"
        yield "</figure>"
    yield "</section>"


def _sections(findings: Findings) -> Iterator[str]:
    yield '<div class="sections">'
    if findings.stages:
        yield from _section("Where the time goes", _stages(findings), wide=True)
    if findings.lanes is not None:
        table = _table(lanes(findings.lanes), mark="<- use this")
        yield from _section(
            "Lanes", table + _words(_sentence(python_words(findings.lanes))), wide=True
        )
    if findings.sweep is not None:
        table = _table(sweep(findings.sweep), mark="best")
        words = _words(_sentence(sweep_words(findings, findings.sweep)))
        yield from _section("Batch sizes", table + words, wide=True)
    if findings.storage is not None:
        yield from _section("Storage, processing, training", _storage(findings))
    if findings.plan is not None:
        yield from _section("Settings", _settings(findings.plan, findings.lane))
    if findings.depths:
        yield from _section("Batches ahead", _table(depths(findings.depths)))
    if findings.memory is not None:
        yield from _section("Memory", _memory(findings.memory))
    if findings.curves:
        rows = [("stage", "measured, samples/s", "fit")]
        for curve in findings.curves:
            measured = ", ".join(f"{p.workers}: {number(p.rate)}" for p in curve.points)
            rows.append((curve.name, measured, fit_words(curve)))
        yield from _section("Scaling of each stage", _table(rows), wide=True)
    yield "</div>"


def _section(heading: str, inside: str, *, wide: bool = False) -> Iterator[str]:
    yield f"<section{' class=wide' if wide else ''}><h2>{escape(heading)}</h2>{inside}</section>"


def _words(words: str) -> str:
    return f"<p>{escape(words)}</p>"


def _settings(found: Plan, lane: str) -> str:
    """Returns what to write in a program, and how it was found."""
    limits = [(name, f"{number(rate)} samples/s") for name, rate in found.limits.items()]
    rows = [
        ("", ""),
        ("measured", f"{number(found.rate)} samples/s, waits {found.waiting:.1%}"),
        (
            "asked for by the costs",
            f"{found.predicted} worker{'' if found.predicted == 1 else 's'}",
        ),
        *((f"limit: {name}", rate) for name, rate in limits),
        ("tried", ", ".join(f"{run.workers}: {number(run.rate)}" for run in found.tried)),
    ]
    return f"<pre>Loader(..., {escape(arguments(found, lane))})</pre>" + _table(rows)


def _stages(findings: Findings) -> str:
    """Returns the table of stages, with a bar for what each takes."""
    parts = [row.ms for row in findings.stages if row.name != "all of loading"]
    whole = sum(parts) or 1.0
    head = ("stage", "", "ms per sample", "cores needed", "readiness", "verdict")
    lines = [
        "<table><thead><tr>",
        *(f"<th>{escape(name)}</th>" for name in head),
        "</tr></thead><tbody>",
    ]
    for row in findings.stages:
        last = row.name == "all of loading"
        width = 100.0 if last else 100 * row.ms / whole
        bar = "" if last else f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'
        cells = (ms(row.ms), f"{row.cores:.2g}", f"{row.readiness:.0%}")
        lines.append(f"<tr{' class=sum' if last else ''}><td>{escape(row.name)}</td><td>{bar}</td>")
        lines += [f'<td class="n">{cell}</td>' for cell in cells]
        lines.append(f"<td>{escape(row.verdict)}</td></tr>")
    return "\n".join([*lines, "</tbody></table>"])


def _table(rows: Sequence[Sequence[str]], mark: str = "") -> str:
    """Returns a table; numbers to the right, and the row whose last cell is `mark` set off."""
    lines = [
        "<table><thead><tr>",
        *(f"<th>{escape(cell)}</th>" for cell in rows[0]),
        "</tr></thead><tbody>",
    ]
    for row in rows[1:]:
        chosen = ' class="chosen"' if mark and row[-1] == mark else ""
        lines.append(f"<tr{chosen}>")
        for cell in row:
            kind = (
                ' class="n"'
                if cell[:1].isdigit() or (cell[:1] in "+-<" and cell != "<- use this" and cell)
                else ""
            )
            lines.append(f"<td{kind}>{escape(cell.removeprefix('<- '))}</td>")
        lines.append("</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def _storage(findings: Findings) -> str:
    """Returns the three runs as bars."""
    found = findings.storage
    assert found is not None
    rates = {
        "batches in memory": found.cached,
        "warm page cache": found.warm,
        "cold files": found.cold,
    }
    most = max(
        (rate for name, rate in rates.items() if rate and name != "batches in memory"), default=1.0
    )
    lines = ['<div class="bars">']
    for name, rate in rates.items():
        if rate is None:
            continue
        width = min(100.0, 80 * rate / most)
        more = " open" if 80 * rate / most > 100 else ""
        lines.append(
            f'<span>{escape(name)}</span><span class="bar{more}"><i style="width:{width:.1f}%"></i></span>'
            f"<span>{number(rate)} samples/s</span>"
        )
    lines.append("</div>")
    if found.bytes_per_s is not None:
        speed = f"{found.files} files at {size(found.bytes_per_s)}/s from storage"
        lines.append(f"<p>{speed}; {size(found.file_bytes)} for a sample.</p>")
    return "\n".join([*lines, f"<p>{escape(_sentence(found.verdict))}</p>"])


def _memory(found: MemoryPlan) -> str:
    rows = [
        ("", ""),
        ("available to a rank", f"{size(found.available_bytes)} ({found.tier})"),
        ("memory_budget", f"{found.budget_bytes // (1 << 20)} MiB"),
        ("batches in flight", str(found.depth)),
        ("pin_memory", str(found.pin_memory)),
        ("evaluation batch size", str(found.evaluation_batch_size)),
        ("memory in use with it", f"{found.share:.0%}: {found.verdict}"),
    ]
    return _table(rows)


def _foot(findings: Findings) -> Iterator[str]:
    host = findings.host
    words = (
        f"{host.machine.cpu}, {host.host_cores} processors, {host.ranks} rank{'s' if host.ranks > 1 else ''} · "
        f"Python {host.machine.python} · torch {host.machine.torch} · fastload {host.machine.fastload} · "
        f"measured for {findings.seconds:.0f} s · lane {findings.lane}: {findings.why}"
    )
    yield f"<footer>{escape(words)}</footer>"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
