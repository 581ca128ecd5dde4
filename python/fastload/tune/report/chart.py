"""A chart as inline SVG: axes with units, lines, and points that say what they are when pointed at.

Owns the drawing; knows nothing of findings. Colours are classes, which the page's style gives for light and
dark. Every text from outside is escaped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from fastload.tune.report.axis import Axis, across, doubling, short

__all__ = ["Chart", "Mark", "Point", "Series", "svg"]

_WIDTH, _WIDE, _HEIGHT = 560.0, 1158.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 16.0, 26.0, 44.0
_TIP_HEIGHT, _LETTER = 22.0, 6.4


@dataclass(frozen=True)
class Point:
    """A place, and what it says when pointed at; a bad one is coloured so."""

    x: float
    y: float
    tip: str = ""
    is_bad: bool = False


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes:
        name: For the legend.
        kind: `"dots"`, `"line"`, `"both"` or `"area"`.
        points: In the order of x.
        colour: Number of a colour, from 1.
        dashed: Whether its line is.
    """

    name: str
    kind: str
    points: Sequence[Point]
    colour: int = 1
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A vertical line with a word."""

    x: float
    word: str
    is_bad: bool = False


@dataclass(frozen=True)
class Chart:
    """What to draw.

    Attributes:
        title: The question that it answers, for those who cannot see it.
        x: What is along, with its unit.
        y: What is up, with its unit.
        series: The points.
        marks: Vertical lines.
        doubles: Whether each doubling along takes the same room.
        x_ticks: Values to write along; None for round numbers, or those of the points where it doubles.
        top: What the highest value has at least.
    """

    title: str
    x: str
    y: str
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    doubles: bool = False
    x_ticks: Sequence[float] | None = None
    top: float = 0.0


def svg(chart: Chart, *, wide: bool = False) -> str:
    """Returns the chart; a wide one has room for two."""
    width = _WIDE if wide else _WIDTH
    points = [point for series in chart.series for point in series.points]
    high = max([chart.top, *(point.y for point in points)], default=1.0)
    y = across(high * 1.05, _HEIGHT - _BOTTOM, _TOP)
    if chart.doubles:
        values = chart.x_ticks if chart.x_ticks is not None else [point.x for point in points]
        x = doubling(values, _LEFT + 14, width - _RIGHT - 14)
    else:
        x = across(max((point.x for point in points), default=1.0), _LEFT, width - _RIGHT, 6)
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width:.0f} {_HEIGHT:.0f}" role="img">',
            f"<title>{escape(chart.title)}</title>",
            *_axes(chart, x, y, width),
            *(part for mark in chart.marks for part in _mark(mark, x, y, width)),
            *(part for series in chart.series for part in _lines(series, x, y)),
            *(part for series in chart.series for part in _dots(series, x, y, width)),
            "</svg>",
        ]
    )


def _axes(chart: Chart, x: Axis, y: Axis, width: float) -> Iterator[str]:
    left, right, bottom = _LEFT, width - _RIGHT, _HEIGHT - _BOTTOM
    for value in y.ticks:
        at = y.at(value)
        yield f'<line class="grid" x1="{left:g}" x2="{right:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield (
            f'<text class="tick" x="{left - 8:g}" y="{at + 4:.1f}" text-anchor="end">'
            f"{short(value)}</text>"
        )
    yield f'<line class="axis" x1="{left:g}" x2="{right:g}" y1="{bottom:g}" y2="{bottom:g}"/>'
    for value in x.ticks:
        at = x.at(value)
        yield f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom:g}" y2="{bottom + 4:g}"/>'
        yield (
            f'<text class="tick" x="{at:.1f}" y="{bottom + 18:g}" text-anchor="middle">'
            f"{short(value)}</text>"
        )
    yield (
        f'<text class="label" x="{(left + right) / 2:g}" y="{_HEIGHT - 6:g}" '
        f'text-anchor="middle">{escape(chart.x)}</text>'
    )
    yield f'<text class="label" x="0" y="12">{escape(chart.y)}</text>'


def _mark(mark: Mark, x: Axis, y: Axis, width: float) -> Iterator[str]:
    at = x.at(mark.x)
    kind = "mark bad" if mark.is_bad else "mark"
    anchor = "end" if at > width / 2 else "start"
    beside = -6 if anchor == "end" else 6
    yield f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 6:g}" y2="{y.start:g}"/>'
    yield (
        f'<text class="{kind}" x="{at + beside:.1f}" y="{_TOP + 2:g}" text-anchor="{anchor}">'
        f"{escape(mark.word)}</text>"
    )


def _lines(series: Series, x: Axis, y: Axis) -> Iterator[str]:
    if series.kind == "dots" or len(series.points) < 2:
        return
    places = [f"{x.at(point.x):.1f},{y.at(point.y):.1f}" for point in series.points]
    if series.kind == "area":
        first, last = x.at(series.points[0].x), x.at(series.points[-1].x)
        outline = f"{first:.1f},{y.start:g} {' '.join(places)} {last:.1f},{y.start:g}"
        yield f'<polygon class="area c{series.colour}" points="{outline}"/>'
    dashed = " dashed" if series.dashed else ""
    yield f'<polyline class="line c{series.colour}{dashed}" points="{" ".join(places)}"/>'


def _dots(series: Series, x: Axis, y: Axis, width: float) -> Iterator[str]:
    if series.kind == "line":
        return
    small = series.kind == "area"
    for point in series.points:
        at, up = x.at(point.x), y.at(point.y)
        bad = " bad" if point.is_bad else ""
        radius = 2.2 if small else 4.5
        yield f'<g class="point c{series.colour}{bad}" tabindex="0">'
        yield f"<title>{escape(point.tip)}</title>"
        yield f'<circle class="reach" cx="{at:.1f}" cy="{up:.1f}" r="12"/>'
        yield f'<circle class="dot{" small" if small else ""}" cx="{at:.1f}" cy="{up:.1f}" r="{radius:g}"/>'
        yield from _tip(point.tip, at, up, width)
        yield "</g>"


def _tip(words: str, at: float, up: float, chart: float) -> Iterator[str]:
    """Draws what shows while a point is pointed at, within the chart."""
    width = len(words) * _LETTER + 16
    left = min(max(2.0, at - width / 2), chart - width - 2)
    top = up - _TIP_HEIGHT - 10
    if top < 0:
        top = up + 12
    yield (
        f'<g class="tip"><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{_TIP_HEIGHT:g}" rx="5"/><text x="{left + width / 2:.1f}" '
        f'y="{top + 15:.1f}" text-anchor="middle">{escape(words)}</text></g>'
    )
