"""Runs the command: `python -m fastload.tune`."""

import faulthandler
import sys

if __name__ == "__main__":
    try:
        from fastload.tune.command import main
    except ModuleNotFoundError as error:
        if not f"{error.name}.".startswith("rich."):
            raise
        sys.stderr.write(
            "python -m fastload.tune needs the package rich: pip install 'fastload[tune]'\n"
        )
        sys.exit(2)
    faulthandler.enable()  # samples are made in this process, too: of one that crashes it, the line is printed
    sys.exit(main(sys.argv[1:]))
