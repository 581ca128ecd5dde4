"""What the benches have in common."""

import pytest

from fastload import _lib

pytest.importorskip("rich", reason="benches print with it")

from _contest import refuse_debug_build


def test_a_debug_build_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_lib, "debug_assertions", False)
    refuse_debug_build()
    monkeypatch.setattr(_lib, "debug_assertions", True)
    with pytest.raises(SystemExit, match="`make release`"):
        refuse_debug_build()
