"""Runs the command: `python -m fastload.check`."""

import sys

from fastload.check.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
