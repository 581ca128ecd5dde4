"""Release builds with overflow checks beside builds without: wheels that were made before.

    maturin build --release --locked --features abi3 --out with
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=false maturin build --release --locked --features abi3 --out without
    python benches/overflow.py with/*.whl without/*.whl

Prints for each case the CPU time of 20 epochs of either build and their ratio; `--instructions` counts
instructions in place of that, under callgrind, which a busy machine does not disturb.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EPOCHS = 20
"""As many are timed together; of instructions, one is counted."""
CASES = ("photographs", "rows", "padded", "parquet", "npy", "wav")


def dataset(case: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Makes a case's files, once, and its dataset; returns what its loader needs beside it."""
    import PIL.Image
    import pyarrow as pa
    import pyarrow.parquet as pq
    import soundfile
    import torch

    from fastload import PadCollate, transforms
    from fastload.columns import Audio, Image, Npy, Parquet, Ragged, Rows

    random = np.random.default_rng(0)

    def files(count: int, suffix: str, write: Callable[[Path], Any]) -> list[Path]:
        paths = [folder / f"{case}{number:04}{suffix}" for number in range(count)]
        for path in paths:
            if not path.exists():
                write(path)
        return paths

    if case == "photographs":
        small = random.integers(0, 256, (24, 30, 3), np.uint8)

        def photograph(path: Path) -> None:
            PIL.Image.fromarray(small).resize((500, 400)).save(path, quality=85)

        ops = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
        return Image(files(64, ".jpg", photograph), ops), {"batch_size": 16}
    if case == "rows":
        return Rows(torch.zeros(400_000, 32)), {"batch_size": 256, "shuffle": True}
    if case == "padded":
        lengths = random.integers(10, 400, 20_000)
        offsets = torch.from_numpy(np.concatenate([[0], lengths.cumsum()]))
        lists = Ragged(torch.arange(int(offsets[-1])), offsets)
        return lists, {"batch_size": 64, "shuffle": True, "collate_fn": PadCollate()}
    if case == "parquet":
        table = pa.table({"a": random.integers(0, 1000, 1_000_000)})

        def write(path: Path) -> None:
            pq.write_table(table, path)

        return Parquet(files(1, ".parquet", write), "a"), {"batch_size": 1024, "shuffle": True}
    if case == "npy":
        paths = files(500, ".npy", lambda path: np.save(path, np.zeros((100, 128), np.float32)))
        return Npy(paths), {"batch_size": 64, "shuffle": True}
    noise = (random.standard_normal(16_000) * 0.1).astype(np.float32)
    paths = files(500, ".wav", lambda path: soundfile.write(path, noise, 16_000))
    return Audio(paths), {"batch_size": 64, "shuffle": True}


def run(case: str, folder: Path, *, counts: bool) -> None:
    """Runs a case, and measures all epochs but the first: CPU time, or instructions."""
    import fastload

    data, options = dataset(case, folder)
    loader = fastload.Loader(data, num_workers=1, tune=False, **options)

    def epoch() -> None:
        for _ in loader:
            pass

    def control(switch: str) -> None:
        if counts:
            command = ["callgrind_control", f"--instr={switch}", str(os.getpid())]
            subprocess.run(command, check=True, capture_output=True)

    epoch()
    control("on")
    begun = time.process_time()
    for _ in range(1 if counts else EPOCHS):
        epoch()
    print(time.process_time() - begun)
    control("off")


def measured(site: Path, case: str, folder: Path, *, counts: bool) -> float:
    """Runs a case with the package of `site`."""
    command = [sys.executable, __file__, "--case", case, "--folder", str(folder)]
    out = folder / "callgrind"
    if counts:
        callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        command = [*callgrind, f"--callgrind-out-file={out}", *command, "--instructions"]
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    if not counts:
        return float(done.stdout)
    lines = [line for line in out.read_text().splitlines() if line.startswith("totals:")]
    return float(lines[-1].split()[1])


def main() -> None:
    """Compares the wheels, or runs one case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", nargs="*", type=Path, help="with checks, and without")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.folder:
        run(arguments.case[0], arguments.folder, counts=arguments.instructions)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sites = [folder / str(number) for number in range(2)]
        for site, wheel in zip(sites, arguments.wheels, strict=True):
            zipfile.ZipFile(wheel).extractall(site)
        rounds = 1 if arguments.instructions else arguments.rounds
        unit = "instructions" if arguments.instructions else "s"
        for case in arguments.case or CASES:
            found: list[list[float]] = [[], []]
            for number in range(2 * rounds):
                which = (number + number // 2) % 2
                figure = measured(sites[which], case, folder, counts=arguments.instructions)
                found[which].append(figure)
            checked, unchecked = (statistics.median(figures) for figures in found)
            ratio = checked / unchecked
            print(f"{case:12} {checked:.6g} {unit} with, {unchecked:.6g} without: {ratio:.3f}")


if __name__ == "__main__":
    main()
