"""`Keep`: passes on the values of a field as they are."""

from dataclasses import dataclass
from typing import final

__all__ = ["Keep"]


@final
@dataclass(frozen=True)
class Keep:
    """The values of a field as a list, one for each sample: what the dataset returned, untouched."""
