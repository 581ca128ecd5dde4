"""Trains on a folder of photographs with each loader, and shows what that cost: `make demo`."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import fastload
from demo.contestant import Contestant
from demo.loaders import BATCH_SIZE, CONTESTANTS, WORKERS, fastload_loader, torch_loader
from demo.photographs import COUNT, photographs
from demo.picture import Measure, draw
from demo.training import Epoch

TORCH, FASTLOAD = CONTESTANTS


def main() -> None:
    """Runs the demo."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--photographs", type=int, default=COUNT, help="how many files")
    parser.add_argument("--rounds", type=int, default=3, help="epochs of each loader")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="a folder")
    arguments = parser.parse_args()

    console = Console(width=max(110, Console().width), highlight=False)
    with console.status("Cutting photographs (once)"):
        root = photographs(arguments.photographs)
    console.print(f"{arguments.photographs} photographs in {_shown(root)}")

    with console.status("Comparing every batch of both loaders"):
        batches, first = _compare(root)
    console.print(f"{batches} batches of {BATCH_SIZE}: identical in every bit, in the same order")

    rounds: dict[str, list[Epoch]] = {name: [] for name in CONTESTANTS}
    extra_bytes: dict[str, list[int]] = {}
    with ExitStack() as stack:
        with console.status("Starting a process for each loader"):
            contestants = {
                name: stack.enter_context(Contestant(name, root)) for name in CONTESTANTS
            }
        for name, contestant in contestants.items():
            with console.status(f"Watching the memory of {name}"):
                extra_bytes[name] = [contestant.extra_bytes()]
        for number in range(arguments.rounds):
            for name, contestant in contestants.items():
                with console.status(f"Epoch {number + 1} of {arguments.rounds}: {name}"):
                    rounds[name].append(contestant.epoch())

    measures = _measures(rounds, extra_bytes)
    console.print(_table(measures))
    is_same = _show_losses(console, rounds)

    picture = arguments.output / "fastload.png"
    ratio = measures[0].median(FASTLOAD) / measures[0].median(TORCH)
    draw(
        picture,
        first,
        measures,
        [
            f"The same batches, bit for bit, at {ratio:.1f} times the speed",
            f"One epoch over {arguments.photographs} JPEG photographs (Resize 256, CenterCrop 224, "
            f"ToTensor, Normalize; batches of {BATCH_SIZE}) while one core trains a small CNN.",
            f"{WORKERS} worker processes beside {WORKERS} native threads on "
            f"{len(os.sched_getaffinity(0))} cores; "
            f"medians of {arguments.rounds} epochs taken in turn, lines from the lowest to the highest."
            f" torch {torch.__version__}, fastload {fastload.__version__}.",
        ],
    )
    console.print(f"Picture: {_shown(picture)}")
    if not is_same:
        raise SystemExit(1)


def _compare(root: Path) -> tuple[int, Sequence[torch.Tensor]]:
    """Compares both loaders' epochs; returns how many batches they have, and fastload's first.

    Raises:
        SystemExit: A batch differs.
    """
    count = 0
    first: Sequence[torch.Tensor] = ()
    for theirs, ours in zip(torch_loader(root), fastload_loader(root), strict=True):
        if not all(map(torch.equal, theirs, ours)):
            msg = f"batch {count} differs between torch's DataLoader and fastload's"
            raise SystemExit(msg)
        first = first or ours
        count += 1
    return count, first


def _measures(
    rounds: Mapping[str, Sequence[Epoch]], extra_bytes: Mapping[str, Sequence[int]]
) -> list[Measure]:
    def each(value: Callable[[Epoch], float]) -> dict[str, list[float]]:
        return {name: [value(epoch) for epoch in epochs] for name, epochs in rounds.items()}

    extra_mb = {name: [value / 1e6 for value in values] for name, values in extra_bytes.items()}
    return [
        Measure("Speed", "samples/s", 0, True, each(lambda e: e.samples / e.wall_s)),
        Measure("First batch after", "ms", 0, False, each(lambda e: 1e3 * e.first_batch_s)),
        Measure("CPU time", "s", 1, False, each(lambda e: e.cpu_s)),
        Measure("Extra memory", "MB", 0, False, extra_mb),
        Measure("Training waited", "%", 0, False, each(lambda e: 100 * e.waiting_s / e.wall_s)),
    ]


def _table(measures: Sequence[Measure]) -> Table:
    table = Table(title="One epoch, training included", title_justify="left", title_style="bold")
    table.add_column("")
    for name in CONTESTANTS:
        table.add_column(name, justify="right")
        table.add_column("low - high", justify="right", style="dim")
    table.add_column("fastload / torch", justify="right")
    for measure in measures:
        cells = [
            text for name in CONTESTANTS for text in (measure.words(name), measure.spread(name))
        ]
        ratio = measure.median(FASTLOAD) / measure.median(TORCH)
        good = (ratio > 1) == measure.more_is_better
        table.add_row(measure.name, *cells, f"[{'green' if good else 'red'}]{ratio:.2f}")
    return table


def _show_losses(console: Console, rounds: Mapping[str, Sequence[Epoch]]) -> bool:
    """Prints and returns whether both contestants learned the same: the losses of every step, bit for bit."""
    theirs, ours = (rounds[name][0].losses for name in CONTESTANTS)
    verdict = "the same to the last bit" if theirs == ours else "[red]not the same[/red]"
    console.print(
        f"Losses of all {len(theirs)} steps: {verdict} "
        f"({theirs[0]:.6f} ... {theirs[-1]:.6f} and {ours[0]:.6f} ... {ours[-1]:.6f})"
    )
    return theirs == ours


def _shown(path: Path) -> str:
    """Returns a path relative to the working directory where that is shorter."""
    path = path.resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    main()
