"""What does a section of a heartbeat say? Its bytes are kept as they came, and read only when somebody needs them.

So whoever reads one must be ready for anything: bytes that a former version let in, or that a newer one understands.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T")
D = TypeVar("D")
# Raw JSON is not looked at when it is taken in: text that is no UTF-8 is found only by whoever reads it.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read(body: bytes, decoder: "msgspec.json.Decoder[T]", otherwise: D) -> T | D:
    """`otherwise` if it cannot be read: its sender may be of a version that says it differently."""
    try:
        return decoder.decode(body)
    except UNREADABLE:
        return otherwise


def is_text(body: msgspec.Raw) -> bool:
    """Whether it is UTF-8, as all JSON is."""
    try:
        str(memoryview(body), "utf-8")
    except UnicodeDecodeError:
        return False
    return True
