"""Damaged files of every format: what becomes of them here, and where their own library reads them.

Small files of each encoding are cut, have bytes flipped, and one to six bytes replaced at random, `--most` files
of each kind of damage. Equal: read as the library reads it. Nothing may be read alone, but for Parquet, some of whose
damaged headers pyarrow alone refuses; and nothing may differ, but for MP3, whose sound has no checksum, so that of
damaged frames each decoder makes its own.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by path; damage is the tests'

from tests.columns.damage import Tally, every_kind, tally
from tests.columns.formats import FORMATS

MOST = 150
"""Damaged files of each encoding and of each kind of damage."""
SHOWN = 3
"""Cases of each kind that must not be, in full."""


def damage(name: str, folder: Path, most: int) -> tuple[Tally, list[str]]:
    """Returns what became of the files of a format, and the first of those that should not be."""
    form, table, wrong = FORMATS[name], Tally(), []
    for encoding, whole in form.files.items():
        found = tally(form, folder, every_kind(whole, most))
        table += found
        for what, cases in found.wrong(form).items():
            wrong += [f"{name}, {encoding}: {what}: {case}" for case in cases[:SHOWN]]
    return table, wrong


def main() -> int:
    """Runs the bench; returns 1 if something was read that should not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=list(FORMATS), help="the formats; all")
    parser.add_argument("--most", type=int, default=MOST, help="files of each kind and encoding")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    shown = Table(title="Damaged files")
    heads = ("equal", "refused by both", "refused alone", "read alone", "differ", "s")
    for number, name in enumerate(("", "encodings", "files", *heads)):
        shown.add_column(name, justify="right" if number else "left")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.formats:
            began_s = time.perf_counter()
            table, cases = damage(name, Path(folder), arguments.most)
            wrong += cases
            counts = [
                *(table.equal, table.refused_by_both, table.refused_alone),
                *(len(table.read_alone), len(table.differ)),
            ]
            shown.add_row(
                name,
                str(len(FORMATS[name].files)),
                *(f"{count:,}" for count in (sum(counts), *counts)),
                f"{time.perf_counter() - began_s:.0f}",
            )
    console.print(shown)
    for case in wrong:
        console.print(case)
    console.print("nothing is read alone, nothing differs" if not wrong else "[red]there is damage")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
