"""What the build says of a Rust that is too old, or of none."""

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.shared.repository import ROOT

NEEDED = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)


def run(folder: Path, version: str | None) -> subprocess.CompletedProcess[str]:
    """Runs the tool beside a cargo that says this version of itself, or fails."""
    cargo = folder / "cargo"
    cargo.write_text(
        f"#!/bin/sh\necho 'cargo {version} (0123456 2025-01-01)'\n"
        if version
        else "#!/bin/sh\nexit 1\n"
    )
    cargo.chmod(0o755)
    for tool in ("sh", "sed", "cut", "dirname"):  # and no compiler, so that nothing is installed
        (folder / tool).symlink_to(which(tool) or tool)
    command = ["sh", str(ROOT / "tools" / "native_tools.sh")]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True)


@pytest.mark.parametrize("version", ["1.9.0", "1.87.1", "1.75.0-nightly", None])
def test_too_old_a_rust_is_named_with_what_to_do(tmp_path: Path, version: str | None):
    assert NEEDED is not None
    done = run(tmp_path, version)
    assert done.returncode == 1
    assert done.stderr == (
        f"cannot build: Rust {NEEDED[1]} or newer is missing; cargo is {version or 'not there'}: "
        "install it from https://rustup.rs, or `rustup update stable`\n"
    )


@pytest.mark.parametrize("patch", ["0", "3", "0-nightly"])
def test_the_version_that_is_asked_for_will_do(tmp_path: Path, patch: str):
    assert NEEDED is not None
    said = run(tmp_path, f"{NEEDED[1]}.{patch}").stderr
    assert said.startswith("cannot build: a C compiler (cc) is missing")
