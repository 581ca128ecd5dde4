"""Runs the command: `python -m fastload.tune`."""

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
    sys.exit(main(sys.argv[1:]))
