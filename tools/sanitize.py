"""Runs tests under checkers that see what tests cannot: `make sanitize`, or `make sanitize ONLY=tsan`.

Owns how each is built (in a folder of its own below `target/sanitize`), what runs under it, and what counts as
a finding: a test that fails, and each report, also of a process that a test started. A checker whose tools are
missing has failed, and says how to get them.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from test import ROOT, Suite, count_cargo, count_pytest, run, suites

TARGET = f"{platform.machine()}-unknown-linux-gnu"
FOLDER = ROOT / "target" / "sanitize"
REPORTS = FOLDER / "reports"
SUPPRESSED = ROOT / "tools" / "sanitize.supp"

NIGHTLY = "rustup toolchain install nightly --profile minimal --component miri,rust-src"
CLANG = "apt-get install clang-19 libclang-rt-19-dev llvm-19 (or another version, all three of it)"

BUILT_FOR_SANITIZERS = ["--locked", "-Zbuild-std", "--target", TARGET]
C_ADDRESS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
"""UBSan's runtime is part of AddressSanitizer's."""

MIRI = ["memory", "stream", "cache", "collate", "steps"]
"""Modules whose tests Miri can run: no C, no fork, no socket, and not for hours."""
SEEDS = 8

PYTHON = [
    "collate/test_default_collate",
    "images/test_foreign*",
    "memory/test_*",
    "processes/test_process_*",
    "stream/test_stream",
]
"""Tests of memory, streams and worker processes, below `tests/`."""
MARKED = "not slow or sanitized"
LEFT_OUT = [
    # memory that torch frees behind the library's back is read before that is noticed: docs/columns.md
    "tests/memory/test_borrowed.py::test_a_move_that_nothing_tells_of_is_an_error",
    # AddressSanitizer's shadow memory has page faults of its own
    "tests/memory/test_memory.py::test_steady_batches_come_without_page_faults",
]

REFUSED = "WARNING: AddressSanitizer failed to allocate"
"""The message on allocations that cannot succeed, which tests request."""

INTERLEAVINGS = re.compile(r"^interleavings: (\d+)$")


@dataclass(frozen=True)
class Tools:
    """What this machine has; a clang counts if it has the runtime of its sanitizers."""

    clang: str
    has_nightly: bool
    features: str

    @classmethod
    def here(cls, features: str) -> "Tools":
        """Looks for them; `features` are further features for cargo."""
        names = ("clang", *(f"clang-{version}" for version in range(40, 13, -1)))
        found = [path for name in names if (path := shutil.which(name))]
        clang = next((path for path in found if library(path, ASAN).is_absolute()), "")
        miri = _told("cargo", "+nightly", "miri", "--version")
        sysroot = _told("rustc", "+nightly", "--print", "sysroot")
        sources = Path(sysroot, "lib/rustlib/src/rust/library")
        return cls(clang, bool(miri) and sources.is_dir(), features)

    def missing(self, check: "Check") -> list[str]:
        """Returns how to get what `check` needs and is not here."""
        lacks_clang = check.needs_clang and not self.clang
        lacks_nightly = check.needs_nightly and not self.has_nightly
        return [NIGHTLY] * lacks_nightly + [CLANG] * lacks_clang


ASAN = f"libclang_rt.asan-{platform.machine()}.so"


def library(clang: str, name: str) -> Path:
    """Returns where `clang` keeps a library; no absolute path if it has none."""
    return Path(_told(clang, f"-print-file-name={name}"))


def _told(*command: str) -> str:
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


def environment(tools: Tools, name: str, rust: str, c: str, options: str) -> dict[str, str]:
    """Returns the environment in which Rust, std and C get a sanitizer's code, and then run with its `options`."""
    options = f"{options}:log_path={REPORTS / name}"
    return {
        "RUSTFLAGS": rust,
        "CARGO_TARGET_DIR": str(FOLDER / name),
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "TSAN_OPTIONS": options,
        "ASAN_OPTIONS": options,
    } | compilers(tools, c)


def compilers(tools: Tools, flags: str) -> dict[str, str]:
    """Returns the environment that has C built by clang with `flags`; build scripts are built without."""
    target, flags = TARGET.replace("-", "_"), f"{flags} -g1 -fno-omit-frame-pointer"
    return {
        f"CC_{target}": tools.clang,
        f"CXX_{target}": tools.clang.replace("clang", "clang++"),
        f"CFLAGS_{target}": flags,
        f"CXXFLAGS_{target}": flags,
    }


def with_reports(
    name: str, count: Callable[[Iterable[str]], Counter[str]]
) -> Callable[[Iterable[str]], Counter[str]]:
    """Counts as `count` does, and as a failure each report of any process, which is shown."""

    def counted(lines: Iterable[str]) -> Counter[str]:
        counts = count(lines)
        for file in sorted(REPORTS.glob(f"{name}.*")):
            lines = file.read_text(errors="replace").splitlines()
            text = "\n".join(line for line in lines if REFUSED not in line)
            if text.strip():
                print(text, flush=True)
                counts["failed"] += max(1, text.count("SUMMARY: "))
        return counts

    return counted


def core(tools: Tools, name: str, title: str, environment: dict[str, str]) -> Suite:
    """Builds the tests of the core for a sanitizer, and returns their suite."""
    cargo = ["cargo", "+nightly", "test", "--lib", "--no-default-features"]
    cargo += ["--features", tools.features, *BUILT_FOR_SANITIZERS]
    build([*cargo, "--no-run"], environment)
    return Suite(title, [cargo], with_reports(name, count_cargo), environment)


def thread(title: str, tools: Tools) -> Suite:
    """Tests of the core: threads, in Rust, its std and C, that touch the same memory unordered."""
    options = f"die_after_fork=0:allocator_may_return_null=1:suppressions={SUPPRESSED}"
    made = environment(tools, "tsan", "-Zsanitizer=thread", "-fsanitize=thread", options)
    return core(tools, "tsan", title, made)


def address(title: str, tools: Tools) -> Suite:
    """Tests of the core: memory of Rust, its std and C that is touched too far or too late, or leaks."""
    options = "detect_leaks=1:allocator_may_return_null=1:print_stacktrace=1"
    made = environment(tools, "asan", "-Zsanitizer=address", C_ADDRESS, options)
    # without its assembly libjpeg-turbo runs as C, which is what can be looked into
    return core(tools, "asan", title, made | {"JSIMD_FORCENONE": "1"})


def extension(title: str, tools: Tools) -> Suite:
    """The extension in an ordinary CPython, which is not built for it: no leaks are looked for."""
    options = "detect_leaks=0:allocator_may_return_null=1:print_stacktrace=1"
    # `sanitized` leaves mimalloc out
    rust = "-Zsanitizer=address --cfg sanitized"
    made = environment(tools, "python", rust, C_ADDRESS, options)
    made |= {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    cargo = ["cargo", "+nightly", "build", "--lib", "--features", f"abi3 {tools.features}"]
    build([*cargo, *BUILT_FOR_SANITIZERS], made)
    package = FOLDER / "python" / "package" / "fastload"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for file in (ROOT / "python" / "fastload").iterdir():
        if not file.name.startswith(("_lib.abi3", "_lib.cpython", "__pycache__")):
            (package / file.name).symlink_to(file)
    (package / "_lib.abi3.so").symlink_to(FOLDER / "python" / TARGET / "debug" / "lib_lib.so")
    # torch throws, which is looked for before torch's own C++ library is there
    preloaded = library(tools.clang, ASAN), library(tools.clang, "libstdc++.so.6")
    made |= {
        "LD_PRELOAD": ":".join(map(str, preloaded)),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(package.parent),
    }
    files = sorted(str(file) for each in PYTHON for file in ROOT.glob(f"tests/{each}.py"))
    pytest = ["env", *(f"{key}={value}" for key, value in made.items())]
    pytest += [sys.executable, "-m", "pytest", "-q", "-m", MARKED, "-o", "timeout=120"]
    pytest += [*(f"--deselect={test}" for test in LEFT_OUT), *files]
    return Suite(title, [pytest], with_reports("python", count_pytest))


def miri(title: str, tools: Tools) -> Suite:
    """Memory and hand-over, interpreted with other orders of threads and other addresses for each seed."""
    found = {file.stem for file in (ROOT / "src").iterdir()}
    gone = [name for name in MIRI if name not in found]
    if gone:
        sys.exit(f"no module of src is called {', '.join(gone)}: tools/sanitize.py, MIRI")
    cargo = ["cargo", "+nightly", "miri", "test", "--locked", "--lib", "--no-default-features"]
    cargo += ["--features", tools.features, "--"]
    flags = f"-Zmiri-permissive-provenance -Zmiri-many-seeds=0..{SEEDS}"
    flags += " -Zmiri-ignore-leaks"  # threads of the pool outlive the tests; AddressSanitizer looks for leaks
    made = {"MIRIFLAGS": flags, "CARGO_TARGET_DIR": str(FOLDER / "miri"), "PROPTEST_CASES": "4"}
    return Suite(title, [[*cargo, *(f"{name}::" for name in MIRI)]], count_cargo, made)


def loom(title: str, tools: Tools) -> Suite:
    """Models: every order of what their threads do."""

    def count(lines: Iterable[str]) -> Counter[str]:
        lines = list(lines)
        found = (INTERLEAVINGS.match(line) for line in lines)
        rounds = sum(int(each[1]) for each in found if each)
        return count_cargo(lines) + Counter(rounds=rounds)

    suite = suites(tools.features)["loom"]
    return Suite(title, [[*suite.commands[0], "--", "--show-output"]], count, suite.environment)


@dataclass(frozen=True)
class Check:
    """A checker: its title, and what builds its suite."""

    title: str
    suite: Callable[[str, Tools], Suite]
    needs_nightly: bool = True
    needs_clang: bool = True


CHECKS = {
    "loom": Check("loom", loom, needs_nightly=False, needs_clang=False),
    "miri": Check(f"Miri, {SEEDS} seeds", miri, needs_clang=False),
    "tsan": Check("ThreadSanitizer: Rust and C", thread),
    "asan": Check("AddressSanitizer, leaks, UBSan: Rust and C", address),
    "python": Check("AddressSanitizer, UBSan: within CPython", extension),
}


def build(command: list[str], environment: dict[str, str]) -> None:
    """Runs a build, whose failure ends this program."""
    print(f"\n== {' '.join(command)}", flush=True)
    tools = str(Path(sys.executable).parent)  # cmake, for libjpeg-turbo
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(command, cwd=ROOT, env=os.environ | path | environment, check=True)


def main() -> int:
    """Runs the checks that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", nargs="*", help=", ".join(CHECKS))
    parser.add_argument("--features", default="", help="further features for cargo")
    arguments = parser.parse_args()
    names = arguments.check or list(CHECKS)
    if unknown := set(names) - set(CHECKS):
        parser.error(f"no check is called {', '.join(sorted(unknown))}: {', '.join(CHECKS)}")
    tools, rows, failed = Tools.here(arguments.features), [], 0
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    for name in names:
        check = CHECKS[name]
        if missing := tools.missing(check):
            rows.append(f"{check.title:44}  not run; needs: {'; '.join(missing)}")
            failed += 1
            continue
        start = time.monotonic()
        suite = check.suite(check.title, tools)
        built = time.monotonic() - start
        [outcome] = run([suite])
        counts = outcome.counts
        rounds = counts["rounds"] or ""
        rows.append(
            f"{check.title:44}  {counts['passed']:6}  {counts['skipped']:7}  {rounds:>13}  "
            f"{built:5.0f}s  {outcome.seconds:5.0f}s  {counts['failed']:8}  {outcome.note}".rstrip()
        )
        failed += counts["failed"]
    columns = "  passed  skipped  interleavings   built     ran  findings"
    print(f"\n{'checker':44}{columns}", *rows, sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
