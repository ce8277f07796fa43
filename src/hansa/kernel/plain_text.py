"""Which characters of somebody else's text are kept? All but those that control something.

Whatever another cluster, a hub or a user's program says is brought into this form where it is written down or shown.
"""

import json
import re

# Not all databases keep them, and terminals obey them; halves of a pair cannot be encoded.
_OBEYED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
# They turn the text around them, end a line, or are not seen. Joiners stay, for there are scripts that need them.
_UNSEEN = r"\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL = re.compile(f"[{_OBEYED}{_UNSEEN}]")


def plain(text: str, longest: int | None = None, *, mark: str = "\ufffd") -> str:
    """Its beginning, with a mark in place of each character that is not kept; tabs and new lines are."""
    return _CONTROL.sub(mark, text[:longest])


def one_line(text: str, longest: int | None = None) -> str:
    """The same with a single blank in place of any that are blank, or are not kept."""
    return " ".join(plain(text, longest, mark=" ").split())


def log(text: str) -> str:
    """The same of what a program prints: its bars and counters return to the beginning of their line."""
    return "\r".join(plain(part) for part in text.split("\r"))


def escaped(document: str) -> str:
    """A JSON document that says the same, with the number of each such character in its place."""
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], document)
