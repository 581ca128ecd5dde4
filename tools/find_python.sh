#!/bin/sh
# Prints the interpreter that .venv is made with: the first CPython >= 3.11 that runs. A name that
# exists but does not start (a version manager's shim) is passed over.
for name in python3.11 python3.12 python3.13 python3.14 python3 python; do
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
    then
        command -v "$name"
        exit 0
    fi
done
echo "no Python >= 3.11 with the venv module was found; install one (Debian: apt-get install" \
    "python3 python3-venv) or name it: make PYTHON=/path/to/python3.11" >&2
exit 1
