"""Kubernetes-style quantities ("500m", "256Mi", "1.5Gi") as exact integers: millicores and bytes.

Everyone who reads a cpu or memory figure from a user comes here, so that "0.2", "200m" and "2e-1" mean the same
everywhere.
"""

import re
from decimal import Decimal

from hansa.kernel.errors import Invalid

_SUFFIX = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_FORM = re.compile(r"^([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE]))?$")
_LARGEST = Decimal(2**63 - 1)


class BadQuantity(Invalid):
    """A quantity is not a number with an optional suffix such as m, k, Mi or Gi."""

    code = "quantity.invalid"


def parse(text: str, *, what: str = "quantity") -> Decimal:
    """The exact value of a quantity, in its base unit (cores, bytes)."""
    match = _FORM.match(text.strip()) if len(text) <= 64 else None
    if match is None:
        raise BadQuantity(f"{what} {text[:40]!r} is not a quantity", hint="write for example 0.5, 500m, 256Mi or 1Gi")
    number, exponent, suffix = match.groups()
    value = Decimal(number + (exponent or "")) * _SUFFIX[suffix or ""]
    if value > _LARGEST:
        raise BadQuantity(f"{what} {text[:40]!r} is too large", hint="the largest value is 2^63-1")
    return value


def millicores(text: str, *, what: str = "cpu") -> int:
    """CPU as whole millicores, rounded up: a job never gets less than it asked for."""
    return _ceil(parse(text, what=what) * 1000, what, text)


def size(text: str, *, what: str = "memory") -> int:
    """Memory or disk as whole bytes, rounded up."""
    return _ceil(parse(text, what=what), what, text)


def _ceil(value: Decimal, what: str, text: str) -> int:
    whole = int(value.to_integral_value(rounding="ROUND_CEILING"))
    if whole > int(_LARGEST):
        raise BadQuantity(f"{what} {text[:40]!r} is too large", hint="the largest value is 2^63-1")
    return whole


def show_size(count: int) -> str:
    """Bytes as people write them: at most one decimal and a binary suffix ("1.5Gi", "200Mi", "17")."""
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        unit = int(_SUFFIX[suffix])
        if count >= unit:
            tenths = (count * 10 + unit // 2) // unit
            return f"{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''}{suffix}"
    return str(count)


def show_apart(one: int, other: int) -> tuple[str, str]:
    """Two sizes as people write them, or in bytes where that would make them look the same."""
    shown = show_size(one), show_size(other)
    return shown if shown[0] != shown[1] else (f"{one} bytes", f"{other} bytes")
