"""Feeds damaged files to parsers, with coverage into C: `python fuzz/run.py jpeg --seconds 600`, or `all`.

Starts from the files that `fuzz/seeds.py` makes and those that are kept in `fuzz/kept`; what is found lies in
`fuzz/artifacts`, what was learnt in `fuzz/corpus`. Images are then compared with Pillow's: `fuzz/beside.py`.
"""

import argparse
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))  # run by path

import beside
import seeds
from sanitize import C_ADDRESS, CLANG, NIGHTLY, TARGET, Tools, compilers

FUZZ = Path(__file__).resolve().parent
TARGETS = sorted(file.stem for file in (FUZZ / "fuzz_targets").iterdir())
LIMITS = ["-timeout=30", "-rss_limit_mb=3000", "-max_len=8192", "-print_final_stats=1"]
MOST_KEPT = 24 << 10
"""Bytes of the archive of the files that are kept of a target."""
ENTRY = 110
"""Bytes at most that an archive takes for a file beside its content."""

EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")
COVERED = re.compile(r"\bcov: (\d+)")


def environment(tools: Tools) -> dict[str, str]:
    """Returns the environment in which C is built with what libFuzzer follows, and checked as Rust is.

    C++ is libFuzzer itself, which must not follow itself. libjpeg-turbo leaves its assembly out, of which
    nobody sees where it goes.
    """
    flags = {} if not tools.clang else compilers(tools, f"{C_ADDRESS} -fsanitize=fuzzer-no-link")
    flags.pop(f"CXXFLAGS_{TARGET.replace('-', '_')}", None)
    return os.environ | flags | {"JSIMD_FORCENONE": "1"}


def fill(target: str) -> Path:
    """Makes the corpus of a target, or adds to it what it is to start from."""
    corpus = FUZZ / "corpus" / target
    seeds.main(target, corpus)
    if (kept := FUZZ / "kept" / f"{target}.zip").exists():
        with zipfile.ZipFile(kept) as archive:
            archive.extractall(corpus)
    return corpus


def run(target: str, seconds: int, environment: dict[str, str]) -> tuple[int, str, str]:
    """Fuzzes a target; returns the exit code, how many files it was fed, and what of the code they reached."""
    command = ["cargo", "+nightly", "fuzz", "run", target, str(fill(target)), "--"]
    command += [*LIMITS, f"-max_total_time={seconds}"]
    executed = covered = "0"
    with subprocess.Popen(
        command,
        cwd=FUZZ.parent,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            executed = found[1] if (found := EXECUTED.search(line)) else executed
            covered = found[1] if (found := COVERED.search(line)) else covered
    return process.returncode, executed, covered


def keep(target: str, environment: dict[str, str]) -> None:
    """Keeps the smallest files of the corpus that reach what all of it reaches, as many as there is room for."""
    corpus = FUZZ / "corpus" / target
    command = ["cargo", "+nightly", "fuzz", "cmin", target, str(corpus), "--", *LIMITS[:3]]
    subprocess.run(command, cwd=FUZZ.parent, env=environment, check=True)
    (FUZZ / "kept").mkdir(exist_ok=True)
    made, room, number = set(seeds.seeds(target)), MOST_KEPT, 0
    with zipfile.ZipFile(FUZZ / "kept" / f"{target}.zip", "w", zipfile.ZIP_LZMA) as archive:
        for file in sorted(corpus.iterdir(), key=lambda file: (file.stat().st_size, file.name)):
            content = file.read_bytes()
            if content in made:
                continue
            room -= len(content) + ENTRY
            if room >= 0:
                # of no time, so that the same files are the same archive
                archive.writestr(zipfile.ZipInfo(f"kept-{number}"), content, zipfile.ZIP_LZMA)
                number += 1


def main() -> int:
    """Fuzzes the targets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="+", choices=[*TARGETS, "all"], metavar="target")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--keep", action="store_true", help="keep what was learnt in fuzz/kept")
    arguments = parser.parse_args()
    tools = Tools.here("")
    if not tools.has_nightly:
        print(f"a nightly toolchain is missing: {NIGHTLY}")
        return 1
    if not tools.clang:
        print(f"without coverage into C, and C unchecked: clang is missing: {CLANG}")
    environs, rows, failed = environment(tools), [], False
    targets = TARGETS if "all" in arguments.target else arguments.target
    for target in targets:
        code, executed, covered = run(target, arguments.seconds, environs)
        failed |= code != 0
        rows.append(f"{target:10} {executed:>12} {covered:>9}  {'FOUND' if code else ''}".rstrip())
        if target in beside.FORMATS:
            counts = beside.compare(target, arguments.seconds / 4, seed=0)
            wrong = any(counts[word] for word in beside.WRONG)
            failed |= wrong
            told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
            rows.append(f"{'':10} beside Pillow: {told}{'  FOUND' if wrong else ''}")
        if arguments.keep:
            keep(target, environs)
    print(f"{'target':10} {'executions':>12} {'covered':>9}", *rows, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
