"""Damaged files of every format: what becomes of them here, and where their own library reads them.

Small files of each encoding are cut at every byte, have every byte flipped in four ways, and one to six bytes
replaced at random. Equal: read as the library reads it. Nothing may be read alone, and nothing may differ:
but for MP3, whose sound has no checksum, so that of damaged frames each decoder makes its own.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by path; damage is the tests'

from tests._damage import Tally, cut, flipped, scattered, tally
from tests._formats import FORMATS

SCATTERED = 400
"""Files of each encoding with several bytes replaced."""
SHOWN = 3
"""Cases of each kind that must not be, in full."""


def damage(name: str, folder: Path, count: int) -> tuple[Tally, list[str]]:
    """Returns what became of the files of a format, and the first of those that should not be."""
    form, table, wrong = FORMATS[name], Tally(), []
    for encoding, whole in form.files.items():
        damaged = [*cut(whole), *flipped(whole), *scattered(whole, count)]
        found = tally(form, folder, damaged)
        table += found
        for what, cases in (("read alone", found.read_alone), ("differs", found.differ)):
            if form.can_tell:
                wrong += [f"{name}, {encoding}: {what}: {case}" for case in cases[:SHOWN]]
    return table, wrong


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=list(FORMATS), help="the formats; all")
    parser.add_argument("--scattered", type=int, default=SCATTERED, help="files of each encoding")
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
            table, cases = damage(name, Path(folder), arguments.scattered)
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


if __name__ == "__main__":
    main()
