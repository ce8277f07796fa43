"""How does a folder go in which scripts left anything? However deep, wide or closed it is.

Used for the folders of runs, for what a pod's former call left and, through `bootstrap`, for the folders of volumes.
"""

import os
import shutil
import subprocess
from collections import deque
from pathlib import Path

from hansa.drivers.runs.stager import beneath

_FEW = 1000  # names


def remove(folder: Path) -> None:
    """Follows no links; a missing folder is fine. Raises OSError if something of it is still there."""
    if not os.path.lexists(folder):
        return
    try:
        if _is_small(folder):
            shutil.rmtree(folder)
            return
    except (OSError, RecursionError):
        pass  # closed by a script that ran as our own user, or changed while we looked
    subprocess.run(["chmod", "-R", "u+rwx", "--", folder], check=False, capture_output=True)
    removal = subprocess.run(["rm", "-rf", "--", folder], check=False, capture_output=True, text=True, errors="replace")
    if removal.returncode:
        raise OSError(f"{folder} could not be removed: {removal.stderr[:200]}")


def _is_small(folder: Path) -> bool:
    """Few names, not too deep: Python would call itself for each step down, and keep all names of a folder in memory
    to remove them."""
    try:
        with beneath.handle(folder) as top:
            deque(beneath.left_files(top, "", os.geteuid(), _FEW), maxlen=0)
    except (beneath.TooDeep, beneath.TooMany, beneath.Unreadable):
        return False
    return True
