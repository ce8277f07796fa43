"""How is JSON from somebody else read without harm? What it would become is counted on its bytes, before a single
object is made of it.

A few megabytes of `[],[],[]` become hundreds of megabytes of objects, and a parser lets no other thread in while it
makes them: sixteen megabytes stopped a whole manager for half a minute. So strings are skipped, whatever stands in
them, what makes objects is counted, and the count ends as soon as it is too much. It takes time for a large document,
and never holds up other threads for long.
"""

import re
from typing import Literal

MOST_PARTS = 20_000  # of a document that people or managers write; a service's definition has some hundred
DEEPEST = 100  # lists and objects within each other; a definition has fewer than ten
_SIGN = re.compile(rb'[\[\]{},"]')
_INNER = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)  # of a string
_PIECE = 64 * 1024  # bytes of a string that are skipped in one go


def is_light(body: bytes, most: int) -> bool:
    """Whether it has no more parts than that, and not too deep. What is no JSON may be either."""
    return not too_much(body, most)


def too_much(body: bytes, most: int) -> Literal["", "parts", "depth"]:
    """Of what it has too much, if so."""
    parts = depth = at = 0
    while (found := _SIGN.search(body, at)) is not None:
        at, sign = found.end(), found[0]
        if sign in b"]}":
            depth -= 1
            continue
        parts += 1
        if sign == b'"':
            at = _after_string(body, at)
        elif sign != b",":
            depth += 1
        if depth > DEEPEST:
            return "depth"
        if parts > most:
            return "parts"
    return ""


def _after_string(body: bytes, at: int) -> int:
    while (inner := _INNER.match(body, at, at + _PIECE)) is not None:
        stop = inner.end()
        if body[stop : stop + 1] == b'"':
            return stop + 1
        if stop == at:
            break  # the end, or half an escape before it
        at = stop
    return len(body)
