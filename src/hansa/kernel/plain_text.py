"""Which characters of somebody else's text are kept? All but those that control something."""

import re

# Not all databases keep them, and terminals obey them; halves of a pair cannot be encoded.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str, longest: int | None = None) -> str:
    """Its beginning, with a mark in place of each character that is not kept; tabs and new lines are."""
    return _CONTROL.sub("\ufffd", text[:longest])
