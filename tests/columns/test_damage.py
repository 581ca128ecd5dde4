"""Damaged files of every format: refused with the name of the file, or what its own library reads."""

import pytest

from .damage import every_kind, tally
from .formats import FORMATS

MOST = 40
"""Damaged files of each kind and encoding; `benches/damage.py` tries more."""


@pytest.mark.parametrize(
    ("name", "encoding"),
    [(name, encoding) for name, form in FORMATS.items() for encoding in form.files],
)
def test_damage_is_refused_or_what_its_own_library_reads(tmp_path, name, encoding, capfd):
    form = FORMATS[name]
    whole = form.files[encoding]
    assert tally(form, tmp_path, [("whole", whole)]).equal == 1
    table = tally(form, tmp_path, every_kind(whole, MOST))
    assert "panicked" not in capfd.readouterr().err  # where mpg123 says much
    assert not any(table.wrong(form).values()), table.wrong(form)
    assert table.refused_by_both > 0
