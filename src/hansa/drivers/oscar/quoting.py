"""What may be repeated of a peer's words? A short line without anything secret that we sent.

A peer's error text can echo our request. So every secret of the request is struck out, and what looks like a
credential as well; only then is the text cut.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable

from hansa.kernel import plain_text

_LONGEST = 300
_STRUCK = "***"
_LOOKS_SECRET = re.compile(
    r"\b(?:Bearer|Basic|Permit|GroupKey)\s+\S+"
    r"|\beyJ[\w-]{5,}(?:\.[\w-]*){0,4}"  # JSON web tokens
    r"|\b[0-9a-fA-F]{64}\b"  # service tokens, permits, group keys
    r"|(?<=://)[^/\s@]+@",
    re.IGNORECASE,
)


def secrets_in(authorization: str) -> set[str]:
    """The header's value and every part of it that must not be repeated."""
    _, _, value = authorization.partition(" ")
    found = {authorization, value.strip()}
    try:
        _, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        found.add(password)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass  # no Basic credentials
    return found


def quote(body: bytes, content_type: str, secrets: Iterable[str]) -> str:
    """The peer's reason in one short line; "" if it gave none worth showing."""
    text = _reason(body.decode("utf-8", "replace"), content_type)
    struck = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(struck, key=len, reverse=True):  # one may hold another
        if form in text and len(form) < 4:
            return ""  # striking out a few letters would show where they stood
        text = text.replace(form, _STRUCK)
    text = plain_text.one_line(_LOOKS_SECRET.sub(_STRUCK, text))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _forms(secret: str) -> set[str]:
    """As it is, and as it stands in JSON."""
    return {form for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]) if form}


def _reason(text: str, content_type: str) -> str:
    if "html" in content_type or text.lstrip()[:1] == "<":
        return "a web page"
    if "json" not in content_type:
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(document, dict):
        said = [document.get(key) for key in ("detail", "hint", "error", "message", "title")]
        return "; ".join(word for word in said[:4] if isinstance(word, str) and word) or str(said[4] or "")
    return document if isinstance(document, str) else ""
