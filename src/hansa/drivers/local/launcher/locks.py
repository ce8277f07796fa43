"""Is this launcher the only one of its kind? It must be: its sweep kills whatever runs in its name."""

import fcntl
import os
import time

from . import protocol

_MACHINE_WIDE = "/run/hansa"
_PATIENCE = 0.5


class Refused(Exception):
    """The launcher may not start here."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def take(config: protocol.Config, *, root: bool) -> list[int]:
    """Files whose locks the kernel takes back however this process ends."""
    os.makedirs(config.run_dir, mode=0o700, exist_ok=True)
    instance = os.open(f"{config.run_dir}/launcher.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _lock_patiently(instance)
    except BlockingIOError:
        raise Refused(
            f"another launcher serves {config.run_dir}",
            "stop the other manager, or give this one a directory of its own",
        ) from None
    if not root:
        return [instance]
    _refuse_known_users(config.uid_base)
    os.makedirs(_MACHINE_WIDE, mode=0o700, exist_ok=True)
    uids = os.open(f"{_MACHINE_WIDE}/uids.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:  # byte n stands for uid n: ranges that overlap by one uid are noticed
        fcntl.lockf(uids, fcntl.LOCK_EX | fcntl.LOCK_NB, protocol.UIDS_PER_INSTANCE, config.uid_base)
    except OSError:
        raise Refused(
            f"another manager on this machine uses uids from {config.uid_base} on",
            f"give each manager its own {protocol.UIDS_PER_INSTANCE} uids",
        ) from None
    return [instance, uids]


def _lock_patiently(file: int) -> None:
    """A launcher that died may have had a child between fork and exec, which holds its lock a moment longer."""
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= patience:
                raise
            time.sleep(0.02)
        else:
            return


def _refuse_known_users(base: int) -> None:
    end = base + protocol.UIDS_PER_INSTANCE
    if base < 1000:
        raise Refused(
            f"uids from {base} on belong to the system",
            "choose a uid range far above the users of the machine",
        )
    for path, first, count in (("/etc/passwd", 2, None), ("/etc/subuid", 1, 2)):
        for fields in _records(path):
            start = int(fields[first])
            size = 1 if count is None else int(fields[count])
            if start < end and base < start + size:
                raise Refused(
                    f"uids {base}-{end - 1} overlap those of {fields[0]} in {path}",
                    "choose a uid range that nobody uses: whatever runs under it is killed at start",
                )


def _records(path: str) -> list[list[str]]:
    try:
        with open(path) as table:
            return [line.strip().split(":") for line in table if line.count(":") >= 2]
    except FileNotFoundError:
        return []
