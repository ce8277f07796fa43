"""Where does a process really listen? Read from the kernel, because a server's flags are only a wish."""

import contextlib
import ipaddress
import os
from pathlib import Path

_LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]] | None:
    """The TCP addresses the process listens at, or None where there is no /proc to tell (not Linux)."""
    if not Path("/proc/self/net/tcp").exists():
        return None
    try:
        return _listening(Path("/proc") / str(pid))
    except (FileNotFoundError, ProcessLookupError):  # the process ended while we looked
        return set()


def _listening(proc: Path) -> set[tuple[str, int]]:
    sockets: set[str] = set()
    for fd in (proc / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we looked
            target = os.readlink(fd)
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found: set[tuple[str, int]] = set()
    for table in ("tcp", "tcp6"):
        path = proc / "net" / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in sockets:
                address, _, port = fields[1].partition(":")
                found.add((_readable(address), int(port, 16)))
    return found


def _readable(words: str) -> str:
    """The kernel prints addresses as hexadecimal words in its own byte order."""
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
