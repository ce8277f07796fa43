"""Which addresses and names may a full cluster take, when other runs have clusters on this machine too?

A slot is a number: the link `hk7`, its addresses 10.201.7.1 and 10.201.7.2, the pods' 10.244.7.0/24 and the control
groups `hansa-k8s-7`. Who has it is known by an abstract socket: such a name belongs to a network, as the addresses do,
and the kernel frees it with its owner, however that ended. So whoever has a slot may remove what it finds there.
"""

import contextlib
import errno
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from real.kubernetes.control_groups import Groups

_SLOTS = range(1, 200)
_FOLDERS = Path("/tmp")  # short: a socket's path has room for 107 letters
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Slot:
    number: int

    @property
    def link(self) -> str:
        return f"hk{self.number}"

    @property
    def host(self) -> str:
        """This machine, as the cluster sees it."""
        return f"10.201.{self.number}.1"

    @property
    def address(self) -> str:
        return f"10.201.{self.number}.2"

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def names(self) -> str:
        """Where its name server is: a pod's address by its looks, but none that a pod is given."""
        return f"10.245.{self.number}.53"

    @property
    def groups(self) -> Groups:
        return Groups(f"hansa-k8s-{self.number}")


@contextlib.contextmanager
def taken() -> Iterator[Slot]:
    """A slot of our own, empty when it is given and when it is given back."""
    with _claimed() as slot:
        sweep(slot)
        try:
            yield slot
        finally:
            sweep(slot)


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """A folder for one cluster; what killed runs left of theirs goes."""
    for old in _FOLDERS.glob("hansa-k8s-*"):
        owner = re.fullmatch(r"hansa-k8s-([0-9a-f]+)-.+", old.name)
        if owner and old.lstat().st_uid == os.geteuid() and not Path("/proc", str(int(owner[1], 16))).exists():
            shutil.rmtree(old, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"hansa-k8s-{os.getpid():x}-{name}-", dir=_FOLDERS))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def sweep(slot: Slot) -> None:
    """Removes what a killed run had to leave in it."""
    slot.groups.remove()
    if Path("/sys/class/net", slot.link).exists():
        subprocess.run(["ip", "link", "del", slot.link], capture_output=True, timeout=_SECONDS, check=False)


@contextlib.contextmanager
def _claimed() -> Iterator[Slot]:
    for number in _SLOTS:
        slot = Slot(number)
        with socket.socket(socket.AF_UNIX) as claim:
            try:
                claim.bind(f"\0hansa-kubernetes-{number}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            if not _strangers(slot):
                yield slot
                return
    raise RuntimeError(f"all {len(_SLOTS)} networks for test clusters are taken")


def _strangers(slot: Slot) -> bool:
    """Does this machine use these addresses for something else?"""
    words = ["ip", "-o", "-4", "address", "show", "to", f"10.201.{slot.number}.0/24"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return any(slot.link not in line for line in shown.stdout.splitlines())
