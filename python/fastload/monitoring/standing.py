"""`Standing`: recognises findings of one window in the next one, so that each has one beginning.

Detectors look at the latest steps alone, so the beginning that they see moves on while a finding holds.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from fastload.monitoring.record import Finding

__all__ = ["Standing"]

_VARIES = re.compile(r"(?<!every )\b\d[\d.,]*")  # all numbers in a sentence, except a period


class Standing:
    """Gives each finding the beginning that it had when it was first made."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, int], tuple[Finding, int]] = {}

    def look(self, findings: Sequence[Finding], step: int) -> list[Finding]:
        """Returns the findings, with their beginnings.

        A finding that was gone goes on if the steps that it rests on reach back to where it held.

        Args:
            findings: Those of a window.
            step: The last step of the window.
        """
        found, seen = [], dict[tuple[str, str, str], int]()
        for finding in findings:
            what = finding.kind, finding.owner, _VARIES.sub("", finding.what)
            seen[what] = place = seen.get(what, -1) + 1
            before, held = self._known.get((*what, place), (finding, -1))
            if before.since_step < finding.since_step <= held:
                finding = replace(finding, since_step=before.since_step, since_s=before.since_s)
            self._known[*what, place] = finding, step
            found.append(finding)
        return found
