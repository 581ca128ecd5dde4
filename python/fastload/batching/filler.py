"""`Filler`: the index of a repeated sample, which only keeps ranks in step."""

from typing import final

__all__ = ["Filler"]


@final
class Filler(int):
    """The index of a sample that another rank loads, too, and that does not count on this rank."""

    def __repr__(self) -> str:
        return f"Filler({int(self)})"

    def __reduce__(self) -> tuple[type["Filler"], tuple[int]]:
        """Pickles the number."""
        return Filler, (int(self),)
