"""What can go wrong when files are moved? It passes (`Trouble`), or it does not (`Refused`)."""

ODD_LETTERS = "a name or a key has letters that cannot be sent to the store"


class Refused(Exception):
    """Trying again cannot help."""


class TooLarge(Refused):
    """What is to be brought does not fit on the disk of the run."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(f"the input needs {needed} bytes, the service's disk limit is {limit} bytes")
        self.needed = needed


class Unheard(Refused):
    """The store knows nothing of keys that it was told of, and had time to learn of them: only others can help."""


class Trouble(Exception):
    """The store is away or busy; trying again can help."""


class NotYet(Trouble):
    """The store does not know keys that it was told of a moment ago: it will, very soon."""
