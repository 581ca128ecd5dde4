"""Runs the command: `python -m fastload.tune`."""

import sys

from fastload.tune.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
