"""The picture of what happened: photographs as they left the loader, and the figures as bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from demo.loaders import MEAN, STD
from demo.photographs import CLASSES

INK, FAINT, PAPER = "#1f2933", "#7b8794", "#fbfaf7"
COLOURS = ("#b8c0cc", "#e4572e")  # torch, fastload


@dataclass(frozen=True)
class Measure:
    """One figure of the comparison: a row of the table, a panel of bars.

    Attributes:
        name: What is measured.
        unit: Its unit, written behind the number.
        digits: Digits behind the point.
        more_is_better: Which way is good.
        values: One list of rounds for each contestant.
    """

    name: str
    unit: str
    digits: int
    more_is_better: bool
    values: Mapping[str, Sequence[float]]

    def median(self, contestant: str) -> float:
        """Returns the median round."""
        return float(torch.tensor(self.values[contestant]).median())

    def words(self, contestant: str) -> str:
        """Returns the median with its unit."""
        return f"{self.median(contestant):,.{self.digits}f} {self.unit}".strip()

    def spread(self, contestant: str) -> str:
        """Returns the smallest and the largest round, or nothing where there is one only."""
        low, high = min(self.values[contestant]), max(self.values[contestant])
        if len(self.values[contestant]) == 1:
            return ""
        return f"{low:,.{self.digits}f} - {high:,.{self.digits}f}"


def draw(
    path: Path, batch: Sequence[torch.Tensor], measures: Sequence[Measure], lines: Sequence[str]
) -> None:
    """Writes the picture.

    Args:
        path: A PNG file to write.
        batch: Normalised images `(B, 3, 224, 224)` and labels `(B,)`; the first 24 are shown.
        measures: A panel each; all of the same two contestants.
        lines: Title, then the text below it.
    """
    figure = Figure(figsize=(14, 10), facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.text(0.04, 0.955, lines[0], size=21, weight="bold", color=INK)
    figure.text(0.04, 0.918, "\n".join(lines[1:]), size=10.5, color=FAINT, va="top")

    mean, std = (torch.tensor(value).view(3, 1, 1) for value in (MEAN, STD))
    sheet = figure.add_gridspec(3, 8, left=0.04, right=0.96, top=0.845, bottom=0.375, wspace=0.06)
    for cell, image, label in zip(sheet, *batch, strict=False):
        axes = figure.add_subplot(cell)
        axes.imshow((image * std + mean).clamp(0, 1).permute(1, 2, 0).numpy())
        axes.set_title(CLASSES[int(label)], size=8, color=FAINT, pad=3)
        axes.axis("off")

    bars = figure.add_gridspec(
        1, len(measures), left=0.04, right=0.96, top=0.275, bottom=0.075, wspace=0.22
    )
    for cell, measure in zip(bars, measures, strict=True):
        _bars(figure.add_subplot(cell), measure)
    for place, (contestant, colour) in enumerate(zip(measures[0].values, COLOURS, strict=True)):
        figure.text(0.04 + 0.14 * place, 0.025, "■", size=13, color=colour)
        figure.text(0.055 + 0.14 * place, 0.026, contestant, size=10.5, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _bars(axes: Axes, measure: Measure) -> None:
    axes.set_facecolor(PAPER)
    medians = [measure.median(contestant) for contestant in measure.values]
    axes.bar(range(len(medians)), medians, color=COLOURS, width=0.72)
    for place, (contestant, median) in enumerate(zip(measure.values, medians, strict=True)):
        rounds = measure.values[contestant]
        axes.vlines(place, min(rounds), max(rounds), color=INK, linewidth=1.2)
        text = f"{median:,.{measure.digits}f}"
        height = max(rounds)
        axes.annotate(
            text,
            (place, height),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            size=11,
            weight="bold",
            color=INK,
        )
    axes.set_ylim(0, 1.22 * max(max(rounds) for rounds in measure.values.values()))
    better = "more is better" if measure.more_is_better else "less is better"
    unit = f"{measure.unit}, " if measure.unit else ""
    axes.set_title(measure.name, size=11.5, color=INK, loc="left", pad=20, weight="bold")
    axes.text(0, 1.05, unit + better, size=8.5, color=FAINT, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
