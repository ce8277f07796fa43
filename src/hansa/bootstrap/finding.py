"""What one check of `doctor` found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `ok` is None where something optional is missing."""

    name: str
    ok: bool | None
    detail: str
    hint: str = ""
