"""`python -m tools.faults [--lane LANE] [--fault FAULT]`: prints the matrix of faults and lanes."""

import argparse
import sys
import time

from tools.faults.lanes import LANES
from tools.faults.matrix import Cell, run_lane

_SHOWN = 3
"""Problems that are printed of one cell."""


def main() -> int:
    """Runs the cells that the command line asks for; returns 1 if any has a problem."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("--lane", action="append", choices=list(LANES), help="default: every lane")
    parser.add_argument("--fault", default="", help="only faults whose names contain this")
    arguments = parser.parse_args()
    start = time.monotonic()
    cells: list[Cell] = []
    for lane in arguments.lane or LANES:
        print(f"\n== {lane}", flush=True)
        for cell in run_lane(lane, arguments.fault):
            print(f"  {cell.fault:42} {cell}", flush=True)
            for problem in cell.problems[:_SHOWN]:
                print("    " + problem.replace("\n", "\n      "), flush=True)
            cells.append(cell)
    bad = sum(bool(cell.problems) for cell in cells)
    failed = sum(cell.failed for cell in cells)
    print(f"\n{len(cells)} cells, {failed} failures in {time.monotonic() - start:.0f} s")
    print(f"{len(cells) - bad} passed, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
