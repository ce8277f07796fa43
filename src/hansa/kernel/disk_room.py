"""How much room is left on the disk of a folder, for whoever asks? And is it full?"""

import os
from pathlib import Path

_LEAST = 2**20  # bytes: with less nothing of ours can start, or write down what it knows


def free(folder: Path) -> int:
    """Bytes, without what the system keeps for root. A folder that is not there yet is on the disk of the one it will
    be in."""
    facts = os.statvfs(_existing(folder))
    return facts.f_bavail * facts.f_frsize


def is_full(folder: Path) -> bool:
    """Of bytes, or of files that it can hold, for the user that asks."""
    facts = os.statvfs(_existing(folder))
    blocks = facts.f_bfree if os.geteuid() == 0 else facts.f_bavail
    return blocks * facts.f_frsize < _LEAST or (facts.f_files > 0 and facts.f_favail == 0)


def _existing(folder: Path) -> Path:
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if path.exists())
