"""What of the store may one run touch? Exact objects and folders, never a whole account. Pure.

`services.reaching` decides it from a service, its event and the rights of the people behind both; `Loans` turn it into
keys that open nothing else.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field


def _always() -> None:
    """Nobody can lose a right to it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Pairs of a bucket and a key, or a bucket and the beginning of keys ("" is the whole bucket)."""

    read: frozenset[tuple[str, str]] = frozenset()
    """Objects that may be read."""
    write: frozenset[tuple[str, str]] = frozenset()
    """Folders into which may be written, not read."""
    share: frozenset[tuple[str, str]] = frozenset()
    """Folders that may be listed, read and written."""
    require_rights: Callable[[], None] = field(default=_always, compare=False, repr=False)
    """Raises `Forbidden` once the people behind the run may not touch all of it any more. Costs nothing: it is asked
    whenever keys are lent, which may be long after the run was ordered."""

    def __bool__(self) -> bool:
        return bool(self.read or self.write or self.share)

    def to_text(self) -> str:
        """For another cluster that shares our store."""
        return json.dumps({name: sorted(getattr(self, name)) for name in ("read", "write", "share")})

    @classmethod
    def from_text(cls, text: str) -> "Reach":
        """Raises ValueError."""
        told = json.loads(text)
        if not isinstance(told, dict):
            raise ValueError("not a reach")
        read, write, share = (frozenset(map(_pair, told.get(name, []))) for name in ("read", "write", "share"))
        return cls(read, write, share)

    @staticmethod
    def folder(name: str) -> str:
        """The beginning of all keys in it."""
        tidy = name.strip("/")
        return f"{tidy}/" if tidy else ""

    def touches(self, bucket: str) -> bool:
        return any(bucket == other for other, _ in self.read | self.write | self.share)

    def reads(self, bucket: str, key: str) -> bool:
        return (bucket, key) in self.read or _below(self.share, bucket, key)

    def writes(self, bucket: str, key: str) -> bool:
        return _below(self.write | self.share, bucket, key)

    def lists(self, bucket: str, prefix: str) -> bool:
        return _below(self.share, bucket, prefix)


NOTHING = Reach()


def _pair(told: object) -> tuple[str, str]:
    match told:
        case [str(bucket), str(key)]:
            return bucket, key
    raise ValueError("not a bucket and a key")


def _below(folders: frozenset[tuple[str, str]], bucket: str, key: str) -> bool:
    return any(bucket == other and key.startswith(start) for other, start in folders)
