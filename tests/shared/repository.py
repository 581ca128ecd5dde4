"""Where the repository is: tests run its programs and read its pages."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
