"""Builds the wheel and the sdist, and tests them where users would: in fresh environments.

Owns the matrix below. Each environment lies in a temporary directory, sees nothing of this source
tree but its tests, and is removed before the next is made (one holds several gigabytes of torch).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SDIST_NEEDS = (
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "LICENSE",
    "NOTICE",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "build.rs",
    "src/lib.rs",
    "src/decode/jpeg.c",
    "python/fastload/__init__.py",
    "python/fastload/_lib.pyi",
    "python/fastload/py.typed",
    "demo/__main__.py",
    "docs/tuning.md",
    "tests/project/test_docs.py",
)
SMOKE = ROOT / "tools" / "smoke.py"
DAMAGE = ROOT / "benches" / "damage.py"


@dataclass(frozen=True)
class Environment:
    """A CPython and what is installed beside the wheel."""

    python: str
    pins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    torch: str
    result: str
    passed: bool
    seconds: float


MATRIX = (
    Environment("3.11"),
    Environment("3.12", ("torch==2.6.*", "torchvision==0.21.*")),  # the oldest supported
    Environment("3.13"),
)


def find_python(version: str) -> str | None:
    """Returns an interpreter of this version: from PATH, or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)
    for candidate in (f"python{version}", *map(str, installed)):
        try:
            answer = subprocess.run(
                [candidate, "-c", "import sys; print(sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            continue
        if answer.stdout.strip() == str(tuple(map(int, version.split(".")))):
            return candidate
    return None


def build(features: str) -> tuple[Path, Path]:
    """Builds the release wheel and the sdist; returns their paths."""
    shutil.rmtree(DIST, ignore_errors=True)
    maturin = [sys.executable, "-m", "maturin"]
    flags = ["--release", "--locked", "--features", features]
    tools = str(Path(sys.executable).parent)  # cmake, for libjpeg-turbo
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(
        [*maturin, "build", *flags, "--out", str(DIST)], cwd=ROOT, env=environment, check=True
    )
    subprocess.run([*maturin, "sdist", "--out", str(DIST)], cwd=ROOT, check=True)
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    if "-cp311-abi3-" not in wheel.name:
        message = f"{wheel.name} is not a wheel for every CPython from 3.11 on"
        raise SystemExit(message)
    return wheel, sdist


def missing_from(sdist: Path) -> list[str]:
    """Returns what the sdist should contain and does not."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [name for name in SDIST_NEEDS if name not in names]


class Venv:
    """A fresh environment, outside of the source tree, that is gone afterwards."""

    def __init__(self, python: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fastload-venv-")
        self.home = Path(self._directory.name)
        subprocess.run([python, "-m", "venv", str(self.home / "venv")], check=True)
        self.pip("--upgrade", "pip>=25.1")

    def __enter__(self) -> "Venv":
        return self

    def __exit__(self, *exception: object) -> None:
        self._directory.cleanup()

    def python(self, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Runs the environment's Python in its own directory, without this tree's paths."""
        hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        return subprocess.run(
            [str(self.home / "venv" / "bin" / "python"), *arguments],
            cwd=self.home,
            env={name: value for name, value in os.environ.items() if name not in hidden},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.STDOUT if capture else None,
            text=True,
            check=False,
        )

    def pip(self, *arguments: str) -> None:
        """Installs; ends the program when that fails."""
        if self.python("-m", "pip", "install", "-q", *arguments).returncode:
            message = f"pip install {' '.join(arguments)} failed"
            raise SystemExit(message)


def test_wheel(environment: Environment, python: str, wheel: Path) -> Row:
    """Runs the whole suite against the installed wheel, and more damaged files than the suite has."""
    start = time.monotonic()
    with Venv(python) as venv:
        group = ("--group", f"{ROOT / 'pyproject.toml'}:test")
        venv.pip(str(wheel), *group, "rich", *environment.pins)
        torch = venv.python("-c", "import torch; print(torch.__version__)", capture=True)
        smoke = venv.python(str(SMOKE))
        tests = venv.python(
            "-m",
            "pytest",
            "-c",
            str(ROOT / "pyproject.toml"),
            f"--rootdir={ROOT}",
            "-p",
            "no:cacheprovider",
            str(ROOT / "tests"),
            capture=True,
        )
        damage = venv.python(str(DAMAGE))
    print(tests.stdout, flush=True)
    closing = re.sub(r"[=\n]|in [\d.]+s.*", "", tests.stdout.splitlines()[-1]).strip()
    passed = all(run.returncode == 0 for run in (smoke, tests, damage))
    seconds = time.monotonic() - start
    return Row(
        f"wheel, CPython {environment.python}", torch.stdout.strip(), closing, passed, seconds
    )


def test_source(python: str, source: Path) -> Row:
    """Installs from `source` (this tree, or the sdist), which builds it, and loads one batch."""
    start = time.monotonic()
    with Venv(python) as venv:
        venv.pip(str(source))
        smoke = venv.python(str(SMOKE))
    passed = smoke.returncode == 0
    what = "pip install ." if source == ROOT else "pip install (sdist)"
    result = "loads a batch" if passed else "does not load a batch"
    return Row(what, "newest", result, passed, time.monotonic() - start)


def main() -> int:
    """Runs the matrix and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", default="abi3", help="features for cargo")
    parser.add_argument("--only", help="one version of Python; no sdist")
    arguments = parser.parse_args()
    wheel, sdist = build(arguments.features)
    rows = []
    for environment in MATRIX:
        if arguments.only not in (None, environment.python):
            continue
        if (python := find_python(environment.python)) is None:
            what = f"wheel, CPython {environment.python}"
            rows.append(Row(what, "", "this Python is not installed", False, 0.0))
        else:
            rows.append(test_wheel(environment, python, wheel))
    if arguments.only is None:
        missing = missing_from(sdist)
        rows.append(Row("sdist", "", f"lacks {missing}" if missing else "complete", not missing, 0))
        rows += [test_source(sys.executable, source) for source in (ROOT, sdist)]
    print(f"\n{wheel.name}")
    for row in rows:
        mark = "ok  " if row.passed else "FAIL"
        print(f"{mark}  {row.what:22} torch {row.torch:16} {row.seconds:5.0f}s  {row.result}")
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
