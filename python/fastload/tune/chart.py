"""A chart as inline SVG: axes with units, lines, and points that show a tip when pointed at.

Owns the drawing; knows nothing of findings. Colours are classes, for which the page's style has values in light
and dark. Text from outside is escaped.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

_WIDTH, _WIDE, _HEIGHT = 560.0, 1158.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 16.0, 26.0, 44.0
_TIP_HEIGHT, _LETTER = 22.0, 6.4
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Point:
    """A point, with the text of its tip; a bad one is drawn in the warning colour."""

    x: float
    y: float
    tip: str = ""
    is_bad: bool = False


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str  # for the legend
    kind: str  # `"dots"`, `"line"`, `"both"` or `"area"`
    points: Sequence[Point]  # in the order of x
    colour: int = 1  # number of a colour, from 1
    dashed: bool = False  # true if its line is dashed


@dataclass(frozen=True)
class Mark:
    """A vertical line with a word."""

    x: float
    word: str
    is_bad: bool = False


@dataclass(frozen=True)
class Chart:
    """The data of a chart; the page writes the heading and the note."""

    heading: str  # what it shows
    note: str  # how to read it
    x: str  # name of the horizontal axis, with its unit
    y: str  # name of the vertical axis, with its unit
    series: Sequence[Series]  # the points
    marks: Sequence[Mark] = ()  # vertical lines
    doubles: bool = False  # true if the horizontal axis is logarithmic
    # values to write on a logarithmic axis; those of the points unless given
    x_ticks: Sequence[float] | None = None
    top: float = 0.0  # least upper end of the vertical axis


@dataclass(frozen=True)
class _Axis:
    """Values from `low` to `high` on the page from `start` to `end`, with ticks; logarithmic if it `doubles`."""

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[float]
    doubles: bool = False

    def at(self, value: float) -> float:
        """Returns the place of a value."""
        low, high = self.low, self.high
        if self.doubles:
            low, high, value = math.log2(low), math.log2(high), math.log2(max(value, 1e-9))
        part = (value - low) / (high - low) if high > low else 0.5
        return self.start + part * (self.end - self.start)


def svg(chart: Chart, *, wide: bool = False) -> str:
    """Returns the chart; a wide one takes the room of two."""
    width = _WIDE if wide else _WIDTH
    points = [point for series in chart.series for point in series.points]
    high = max([chart.top, *(point.y for point in points)], default=1.0)
    y = _linear(high * 1.05, _HEIGHT - _BOTTOM, _TOP)
    if chart.doubles:
        values = chart.x_ticks if chart.x_ticks is not None else [point.x for point in points]
        x = _logarithmic(values, _LEFT + 14, width - _RIGHT - 14)
    else:
        x = _linear(max((point.x for point in points), default=1.0), _LEFT, width - _RIGHT, 6)
        end = max((point.x for point in points), default=x.high) or x.high
        x = replace(x, high=end, ticks=[tick for tick in x.ticks if tick <= end])
    parts = [f'<svg viewBox="0 0 {width:.0f} {_HEIGHT:.0f}" role="img">']
    parts.append(f"<title>{escape(chart.heading)}</title>")
    parts += _axes(chart, x, y, width)
    for mark in chart.marks:
        parts += _mark(mark, x, y, width)
    for series in chart.series:
        parts += _lines(series, x, y)
    for series in chart.series:
        parts += _dots(series, x, y, width)
    return "\n".join([*parts, "</svg>"])


def _linear(high: float, start: float, end: float, ticks: int = 4) -> _Axis:
    """Returns an axis from 0 to a round number of at least `high`."""
    high = high if high > 0 and math.isfinite(high) else 1.0
    raw = high / ticks
    power = 10 ** math.floor(math.log10(raw))
    step = next(each * power for each in _STEPS if each * power >= raw * 0.999999)
    values = [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]
    return _Axis(0.0, values[-1], start, end, values)


def _logarithmic(values: Sequence[float], start: float, end: float) -> _Axis:
    """Returns a logarithmic axis; of values less than a third of an octave apart, one is written."""
    ordered = sorted({float(value) for value in values if value > 0}) or [1.0]
    ticks: list[float] = []
    for value in ordered:
        if not ticks or value / ticks[-1] >= 2 ** (1 / 3):
            ticks.append(value)
    low, high = ordered[0], ordered[-1]
    if low == high:
        low, high = low / 2, high * 2
    return _Axis(low, high, start, end, ticks, doubles=True)


def _axes(chart: Chart, x: _Axis, y: _Axis, width: float) -> Iterator[str]:
    left, right, bottom = _LEFT, width - _RIGHT, _HEIGHT - _BOTTOM
    for value in y.ticks:
        at = y.at(value)
        yield _line("grid", left, at, right, at)
        yield _text("tick", left - 8, at + 4, "end", _short(value))
    yield _line("axis", left, bottom, right, bottom)
    for value in x.ticks:
        at = x.at(value)
        yield _line("axis", at, bottom, at, bottom + 4)
        yield _text("tick", at, bottom + 18, "middle", _short(value))
    yield _text("label", (left + right) / 2, _HEIGHT - 6, "middle", chart.x)
    yield _text("label", 0, 12, "start", chart.y)


def _mark(mark: Mark, x: _Axis, y: _Axis, width: float) -> Iterator[str]:
    at = x.at(mark.x)
    kind = "mark bad" if mark.is_bad else "mark"
    is_right = at > width / 2
    yield _line(kind, at, _TOP - 6, at, y.start)
    yield _text(
        kind, at - 6 if is_right else at + 6, _TOP + 2, "end" if is_right else "start", mark.word
    )


def _lines(series: Series, x: _Axis, y: _Axis) -> Iterator[str]:
    if series.kind == "dots" or len(series.points) < 2:
        return
    places = " ".join(f"{x.at(point.x):.1f},{y.at(point.y):.1f}" for point in series.points)
    if series.kind == "area":
        first, last = x.at(series.points[0].x), x.at(series.points[-1].x)
        outline = f"{first:.1f},{y.start:g} {places} {last:.1f},{y.start:g}"
        yield f'<polygon class="area c{series.colour}" points="{outline}"/>'
    dashed = " dashed" if series.dashed else ""
    yield f'<polyline class="line c{series.colour}{dashed}" points="{places}"/>'


def _dots(series: Series, x: _Axis, y: _Axis, width: float) -> Iterator[str]:
    if series.kind == "line":
        return
    kind, radius = ("dot small", 2.2) if series.kind == "area" else ("dot", 4.5)
    for point in series.points:
        at, up = x.at(point.x), y.at(point.y)
        place = f'cx="{at:.1f}" cy="{up:.1f}"'
        bad = " bad" if point.is_bad else ""
        yield f'<g class="point c{series.colour}{bad}" tabindex="0">'
        yield f"<title>{escape(point.tip)}</title>"
        yield f'<circle class="reach" {place} r="12"/><circle class="{kind}" {place} r="{radius:g}"/>'
        yield _tip(point.tip, at, up, width)
        yield "</g>"


def _tip(words: str, at: float, up: float, chart_width: float) -> str:
    """Returns the text that shows while a point is pointed at, within the chart."""
    width = len(words) * _LETTER + 16
    left = min(max(2.0, at - width / 2), chart_width - width - 2)
    top = up - _TIP_HEIGHT - 10
    if top < 0:
        top = up + 12
    box = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_TIP_HEIGHT:g}" rx="5"'
    text = _text("", left + width / 2, top + 15, "middle", words)
    return f'<g class="tip"><rect {box}/>{text}</g>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(kind: str, x: float, y: float, anchor: str, words: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def _short(value: float) -> str:
    """Returns a number for an axis: `1.5k` for 1500."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
