"""What does the native API say? The shapes of its messages, shared by the doors, the client and the managers.

Nothing here does anything. Requests by people refuse fields they do not know (`Request`); what programs of several
versions tell each other, and every answer, lets them pass (`Message`).

The same holds for words out of a list, such as states: a request is refused with one that is not in it (`State`), while
whoever reads an answer takes any (`AnyState`), for a newer hub may have more of them.
"""

from msgspec import Meta, Struct

NEWER = "These are known now; later versions may tell others."


def known(words: tuple[str, ...]) -> Meta:
    """For the document of the API: a text, mostly one of these."""
    return Meta(description=NEWER, examples=list(words))


class Message(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """An answer, or what a manager and its hub tell each other: unknown fields are ignored."""


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person asks for: an unknown field is a misspelt one."""
