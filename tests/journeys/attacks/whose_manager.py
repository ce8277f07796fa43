"""Managers that are attacked: root's, which can do everything, and an ordinary user's, whose files jobs could open."""

import os

from real import parts
from real.manager import ORDINARY_USER

WHOSE_MANAGER = ("root", "not root")


def as_user(whose: str) -> int | None:
    """For `running_manager`."""
    if os.geteuid() != 0:
        if whose == "root":
            parts.give_up("root", "only root can start a manager of root's")
        return None
    return ORDINARY_USER if whose == "not root" else None
