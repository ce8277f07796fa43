"""What does the native API say? The shapes of its messages, shared by the doors, the client and the managers.

Nothing here does anything. Requests by people refuse fields they do not know (`Request`); what programs of several
versions tell each other, and every answer, lets them pass (`Message`).
"""

from msgspec import Struct


class Message(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """An answer, or what a manager and its hub tell each other: unknown fields are ignored."""


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person asks for: an unknown field is a misspelt one."""
