"""Clusters as network namespaces on one bridge, whose links can be cut, silently or not, and slowed down.

    with network("lubeck", "visby", "riga") as net:
        subprocess.run([*net.inside("visby"), "ping", net.address("lubeck")])
        net.cut("visby"); net.heal("visby")             # carrier loss: programs may notice
        net.cut_pair("lubeck", "visby")                 # frames between these two vanish
        net.one_way("lubeck", "visby")                  # only from the first to the second
        net.heal_all()
        net.delay("visby", 0.025)                       # each way

The bridge is in a hub namespace of its own, so nothing of this machine's network changes, and several test runs may
have the same addresses. Needs root, iproute2 and nftables; everything is removed at the end, also of a failed run, and
what a killed run had to leave is removed by the next.
"""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from real import parts

_NET = "10.99.0"
_LIMIT = 20.0
_DELAY = Path(__file__).with_name("slow_link.py")


@dataclass(slots=True)
class Network:
    prefix: str
    names: tuple[str, ...]
    _down: set[str] = field(default_factory=set)
    _blocked: set[tuple[str, str]] = field(default_factory=set)
    _slow: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def hub(self) -> str:
        return f"{self.prefix}-hub"

    def namespace(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def address(self, name: str) -> str:
        return f"{_NET}.{self.names.index(name) + 1}"

    def inside(self, name: str) -> list[str]:
        """Words before a command. Not `ip netns exec`: that mounts a new /sys, without the control groups jobs need."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(name)}", "--"]

    def cut(self, name: str) -> None:
        self._down.add(name)
        _ip("-n", self.hub, "link", "set", self._port(name), "down")

    def heal(self, name: str) -> None:
        _ip("-n", self.hub, "link", "set", self._port(name), "up")
        self._down.discard(name)

    def cut_pair(self, one: str, other: str) -> None:
        self._blocked |= {(one, other), (other, one)}
        self._block()

    def one_way(self, source: str, target: str) -> None:
        self._blocked.add((source, target))
        self._block()

    def heal_all(self) -> None:
        """Costs nothing where nothing was cut."""
        if self._blocked:
            self._blocked.clear()
            self._block()
        for name in sorted(self._down):
            self.heal(name)

    def delay(self, name: str, seconds: float) -> None:
        """Every frame to and from this cluster takes so much longer: a program carries them, late."""
        port, inner, outer = self._port(name), f"i{self._port(name)}", f"o{self._port(name)}"
        _ip("-n", self.hub, "link", "set", port, "nomaster")
        _ip("-n", self.hub, "link", "add", inner, "type", "veth", "peer", "name", outer)
        _ip("-n", self.hub, "link", "set", inner, "master", "br0", "up")
        _ip("-n", self.hub, "link", "set", outer, "up", "promisc", "on")
        _ip("-n", self.hub, "link", "set", port, "promisc", "on")
        ready_read, ready_write = os.pipe()
        words = [port, outer, inner, str(seconds), str(ready_write), self.namespace(name)]
        self._slow[name] = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.hub}", "--", sys.executable, str(_DELAY), *words],
            stdin=subprocess.PIPE,  # its end tells the program that we are gone
            pass_fds=(ready_write,),
        )
        os.close(ready_write)
        with os.fdopen(ready_read, "rb") as ready:
            if ready.read(1) != b"!":
                raise RuntimeError("the slow link did not start")

    def close(self) -> None:
        for process in self._slow.values():
            process.kill()
            process.wait(_LIMIT)
            if process.stdin is not None:
                process.stdin.close()
        for name in (*map(self.namespace, self.names), self.hub):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=_LIMIT, check=False)

    def up(self) -> None:
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "set", "lo", "up")
        _ip("-n", self.hub, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        _ip("-n", self.hub, "link", "set", "br0", "up")
        for name in self.names:
            own = self.namespace(name)
            _ip("netns", "add", own)
            _ip("-n", own, "link", "set", "lo", "up")
            _ip("-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", self._port(name), "netns", self.hub)
            _ip("-n", own, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            _ip("-n", own, "link", "set", "eth0", "up")
            _ip("-n", self.hub, "link", "set", self._port(name), "master", "br0", "up")

    def _port(self, name: str) -> str:
        return f"p{self.names.index(name) + 1}"

    def _block(self) -> None:
        """One set of forbidden pairs, replaced as a whole."""
        pairs = ", ".join(f'"{self._port(one)}" . "{self._port(other)}"' for one, other in sorted(self._blocked))
        rules = [
            "add table bridge part",
            "delete table bridge part",
            "add table bridge part",
            "add chain bridge part through { type filter hook forward priority 0; }",
        ]
        if pairs:
            rules.append(f"add rule bridge part through iifname . oifname {{ {pairs} }} drop")
        subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.hub}", "--", "nft", "-f", "-"],
            input="\n".join(rules).encode(),
            check=True,
            capture_output=True,
            timeout=_LIMIT,
        )


@contextlib.contextmanager
def network(*names: str) -> Iterator[Network]:
    """A namespace for each name, all connected."""
    if why := hindrance():
        parts.give_up("network namespaces", why)
    _sweep()
    made = Network(f"hansa-{os.getpid():x}-{secrets.token_hex(2)}", names)
    try:
        made.up()
        yield made
    finally:
        made.close()


def hindrance() -> str:
    """Why no network can be made here; "" if it can."""
    if os.geteuid() != 0:
        return "only root may make them"
    for program in ("ip", "nft", "nsenter"):
        if shutil.which(program) is None:
            return f"no program `{program}`"
    return parts.look_for("network-namespaces")[1]  # containers may forbid them even to root


def _sweep() -> None:
    """Namespaces whose test process is gone."""
    for path in Path("/run/netns").glob("hansa-*-*-*"):
        owner = re.match(r"hansa-([0-9a-f]+)-[0-9a-f]{4}-", path.name)
        if owner and not Path("/proc", str(int(owner[1], 16))).exists():
            subprocess.run(["ip", "netns", "del", path.name], capture_output=True, timeout=_LIMIT, check=False)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, timeout=_LIMIT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.decode().strip()}")
