"""The parts of an HTML report: one file with its style and its charts, that loads nothing.

Text from outside is escaped here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from fastload.tune.chart import Chart, svg

_FIGURE = 16  # most characters of a cell that is a figure and not words


@dataclass(frozen=True)
class Section:
    """A table with its heading and words."""

    heading: str  # what it is about
    # The cells. The first column has names, the last one words, those between them numbers
    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()  # names of the columns; empty for none
    notes: Sequence[str] = ()  # sentences below the table
    code: str = ""  # what to write in a program
    chosen: int | None = None  # index of the row that is recommended
    # for each row the length of a bar in percent, for the report; None for the row of the sum
    bars: Sequence[float | None] = ()
    is_wide: bool = False  # true if the report gives it the whole width


def document(title: str, body: Iterable[str]) -> str:
    """Returns the page."""
    style = files("fastload.tune").joinpath("report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>fastload: {escape(title)}</title>",
            f"<style>\n{style}</style></head>",
            "<body><main>",
            *body,
            "</main></body></html>",
            "",
        ]
    )


def header(brand: str, heading: str, what: str) -> str:
    """Returns the top of a page: the command that made it, what it is about, and a description."""
    return (
        f'<header><p class="brand">fastload <span>{escape(brand)}</span></p>\n'
        f'<h1>{escape(heading)}</h1>\n<p class="what">{escape(what)}</p></header>'
    )


def facts(found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yields large numbers: each a name, a value, and words below it."""
    yield '<section class="facts">'
    for name, value, more in found:
        yield (
            f'<div class="fact"><span class="name">{escape(name)}</span>'
            f'<span class="value">{escape(value)}</span>'
            f'<span class="more">{escape(more)}</span></div>'
        )
    yield "</section>"


def figures(charts: Sequence[Chart]) -> Iterator[str]:
    """Yields charts with their headings, notes and legends."""
    yield '<section class="figures">'
    for place, chart in enumerate(charts):
        wide = place == len(charts) - 1 and len(charts) % 2 == 1
        yield f"<figure{' class=wide' if wide else ''}><figcaption><h2>{escape(chart.heading)}</h2>"
        yield f"<p>{escape(chart.note)}</p></figcaption>"
        yield svg(chart, wide=wide)
        if len(chart.series) > 1:
            yield '<p class="legend">'
            for series in chart.series:
                mark = f'<i class="{series.kind} c{series.colour}{" dashed" * series.dashed}"></i>'
                yield f"<span>{mark}{escape(series.name)}</span>"
            yield "</p>"
        yield "</figure>"
    yield "</section>"


def tables(sections: Iterable[Section]) -> Iterator[str]:
    """Yields tables with their headings and words."""
    yield '<div class="sections">'
    yield from map(_section, sections)
    yield "</div>"


def _section(section: Section) -> str:
    has_words = any(len(row[-1]) > _FIGURE for row in section.rows)
    kinds = ["wide"] * section.is_wide + ["words"] * has_words
    parts = [f'<section class="{" ".join(kinds)}"><h2>{escape(section.heading)}</h2>']
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>")
    parts.append("<table>")
    if section.head:
        head = list(section.head)
        if section.bars:
            head.insert(1, "")
        parts.append(
            f"<thead><tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr></thead>"
        )
    parts.append("<tbody>")
    for place, row in enumerate(section.rows):
        cells = [f"<td>{escape(row[0])}</td>"]
        kind = " class=chosen" if place == section.chosen else ""
        if section.bars:
            length = section.bars[place]
            kind = " class=sum" if length is None else kind
            cells.append(f"<td>{'' if length is None else _bar(length)}</td>")
        names = section.head or [""] * len(row)
        cells += [
            f'<td class="n" data-name="{escape(name)}">{escape(cell)}</td>'
            for name, cell in zip(names[1:-1], row[1:-1], strict=True)
        ]
        last = "" if has_words else ' class="n"'
        parts.append(f"<tr{kind}>{''.join(cells)}<td{last}>{escape(row[-1])}</td></tr>")
    notes = [f"<p>{sentence(words)}</p>" for words in section.notes]
    return "\n".join([*parts, "</tbody></table>", *notes, "</section>"])


def _bar(length: float) -> str:
    more = " open" if length > 100 else ""
    return f'<span class="bar{more}"><i style="width:{min(100.0, length):.1f}%"></i></span>'


def sentence(words: str) -> str:
    """Returns words as an escaped sentence: with a capital and a full stop."""
    return escape(f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}")
