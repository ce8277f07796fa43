"""Who holds pods to NetworkPolicies in a test cluster? This program, on the node: its pod network, CNI's plain bridge,
does not know them. (Published enforcers would have to be built from sources whose checksums nobody vouches for.)

It sees pods, namespaces and policies by list and watch, and writes one table of nftables whenever that says something
else (`policy_rules`). A test that has to know that a policy holds by now waits with `caught_up`.

    python -m real.kubernetes.policy_enforcer FOLDER KUBECONFIG PODS-NETWORK
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from lightkube import AsyncClient, KubeConfig
from lightkube.resources.core_v1 import Namespace, Pod
from lightkube.resources.networking_v1 import NetworkPolicy

from hansa.drivers.kubernetes.following import Follow, Key
from real.kubernetes import policy_rules

READY = "policies-ready"
_BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
_SECONDS = 30.0
_GATHER = 0.01  # seconds for what comes together


def words(folder: Path, kubeconfig: Path, network: str) -> list[str]:
    return [sys.executable, "-m", __name__, str(folder), str(kubeconfig), network]


def hindrance() -> str:
    """Why it cannot work on this machine; "" if it can."""
    if not _BRIDGED.exists():
        return "the kernel does not show bridged packets to its filters (br_netfilter)"
    return ""


class Enforcer:
    def __init__(self, client: AsyncClient, network: str, ready: Path) -> None:
        self._network = network
        self._ready = ready
        self._written = ""
        self._news = asyncio.Event()
        kinds = {"pods": (Pod, ()), "namespaces": (Namespace, ("",)), "policies": (NetworkPolicy, ())}
        self._seen = {
            name: Follow(client, kind, {}, self._changed, namespaces=spaces) for name, (kind, spaces) in kinds.items()
        }

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, follow in self._seen.items():
                tasks.create_task(follow.run(), name=f"follow {name}")
            tasks.create_task(self._write(), name="write rules")

    async def _write(self) -> None:
        for follow in self._seen.values():
            await follow.synced.wait()
        while True:
            self._news.clear()
            pods, namespaces, policies = (self._seen[name].all() for name in ("pods", "namespaces", "policies"))
            text = policy_rules.script(policy_rules.walls(pods, namespaces, policies), self._network)
            if text != self._written:
                await asyncio.to_thread(_apply, text)
                self._written = text
            held = {f"{one.metadata.namespace}/{one.metadata.name}": one.metadata.resourceVersion for one in policies}
            known = {f"{one.metadata.namespace}/{one.metadata.name}": one.status.podIP for one in pods}
            _tell(self._ready, {"policies": held, "pods": known})
            await self._news.wait()
            await asyncio.sleep(_GATHER)

    def _changed(self, _key: Key) -> None:
        self._news.set()


def _apply(text: str) -> None:
    done = subprocess.run(["nft", "-f", "-"], input=text, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"nft: {done.stderr}\n{text}")


def _tell(path: Path, what: object) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(what))
    beside.replace(path)


async def caught_up(folder: Path, policies: dict[str, str] | None = None, pods: dict[str, str] | None = None) -> None:
    """These policies hold, by namespace/name at these versions, and these pods are known by their addresses."""
    async with asyncio.timeout(_SECONDS):
        while True:
            told = json.loads((folder / READY).read_text())
            if (policies or {}).items() <= told["policies"].items() and (pods or {}).items() <= told["pods"].items():
                return
            await asyncio.sleep(0.05)


async def main(folder: str, kubeconfig: str, network: str) -> None:
    _BRIDGED.write_text("1")
    client = AsyncClient(config=KubeConfig.from_file(kubeconfig), trust_env=False)
    try:
        await Enforcer(client, network, Path(folder) / READY).run()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
