"""Where it happens: one manager, bob beside alice, and a port that nobody may have the manager call."""

import base64
import contextlib
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from journeys.attacks.fuzz import scripts, victim
from journeys.attacks.fuzz.attacker import Alice
from journeys.attacks.fuzz.forbidden import TRUSTED, Port, listening, own_address
from journeys.attacks.fuzz.steps import Step
from journeys.attacks.fuzz.values import Facts
from journeys.bad_input import stumble
from journeys.conftest import signing_in
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

SETTINGS: dict[str, Any] = {
    "cluster.id": "lubeck",
    "jobs.time_limit": 2,
    "jobs.run_limit": 2,
    "jobs.cpu": "8",
    "log.level": "debug",
    "federation.call_timeout": 2,
}


class Scene:
    def __init__(self, manager: Manager, provider: IdentityProvider, port: Port, canary: Path) -> None:
        signed_in = signing_in(manager, provider)
        self._manager, self._port, self._canary = manager, port, canary
        self._bob = victim.Bob(manager, signed_in("bob"), canary)
        self.alice = Alice(manager, signed_in("alice"), {})
        self._begin()

    def close(self) -> None:
        self.alice.close()
        self._bob.close()

    def _begin(self) -> None:
        self.alice.facts = _facts(self._manager, self._port, self._canary, self._bob.job)
        self.alice.tidies_up()
        self._secrets = self._bob.secrets()
        self._before = self._bob.holdings()
        self._settle()

    def _settle(self) -> None:
        self._port.forbidden.clear()
        self._port.trusted.clear()
        self._read = len(self._manager.log)

    def play(self, steps: list[Step]) -> None:
        """All of it, and everything that must hold afterwards."""
        try:
            for number, step in enumerate(steps):
                self.alice.does(step, number)
            self._same("bob's quota while alice's jobs run", self._bob.used(), self._before["quota"])
            self.alice.waits()
            self._check()
        except BaseException:  # what was broken must not break the next example too
            self._bob.furnish()
            self._begin()
            raise
        self.alice.tidies_up()
        self._settle()

    def _check(self) -> None:
        for seen in self.alice.seen:
            assert seen.status != 500, f"{seen.where}: {seen.text[:2000]}"
            self._nothing_of_bob(seen.where, seen.text)
        assert self._port.forbidden == [], f"forbidden calls: {self._port.forbidden}"
        for heard in self._port.trusted:
            self._nothing_of_bob("what a trusted cluster was told", heard.decode(errors="replace"))
        after = self._bob.holdings()
        for what, before in self._before.items():
            self._same(f"bob's {what}", after[what], before)
        assert not stumble(self._manager.log[self._read :])

    def _nothing_of_bob(self, where: str, text: str) -> None:
        for what, secret in self._secrets.items():
            assert secret not in text, f"{what} in {where}: {text[:2000]}"

    @staticmethod
    def _same(what: str, after: Any, before: Any) -> None:
        assert after == before, f"{what} changed: {str(before)[:2000]} became {str(after)[:2000]}"


def _facts(manager: Manager, port: Port, canary: Path, job: str) -> Facts:
    ports = json.loads((manager.data / "objects" / "ports.json").read_text())
    store = manager.admin.get("/system/config").json()["minio_provider"]["endpoint"]
    claims = {"iss": f"http://127.0.0.1:{port.number}", "sub": "alice", "azp": "x", "typ": "Offline", "exp": 4 * 10**9}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
    return {
        **scripts.WORDS,  # they hold words themselves, so they come first
        "@SERVICE@": victim.SERVICE,
        "@PAGE@": victim.PAGE,
        "@BUCKET@": victim.BUCKET,
        "@VOLUME@": victim.VOLUME,
        "@NAMESPACE@": victim.NAMESPACE,
        "@JOB@": job,
        "@PORT@": str(port.number),
        "@MANAGER@": str(manager.port),
        "@FILER@": str(ports["filer"]),
        "@MASTER@": str(ports["master"]),
        "@STORE@": store,
        "@OWN@": own_address(),
        "@HOST@": socket.gethostname(),
        "@CANARY@": str(canary),
        "@DATA@": str(manager.data),
        "@JWT@": ".".join((*parts, "c2ln")),
        "@TOKENS@": "0123456789abcdef" * 4,
        "@ZEROS@": "0" * 64,
        "@LONG@": "x" * 300,
        "@DEEP@": "[" * 2000,
    }


@contextlib.contextmanager
def scene(provider: IdentityProvider, user: int | None = None) -> Iterator[Scene]:
    """`user` is whose manager it is; ours unless given."""
    with contextlib.ExitStack() as undo:
        port = undo.enter_context(listening())
        folder = Path(tempfile.mkdtemp(prefix="hansa-canary-", dir="/var/tmp"))  # the launcher itself does not see /tmp
        undo.callback(shutil.rmtree, folder)
        folder.chmod(0o755)
        known = {"federation.clusters": {"visby": {"endpoint": f"http://{TRUSTED}:{port.number}"}}}
        manager = undo.enter_context(running_manager({**trusting(provider), **SETTINGS, **known}, user=user))
        made = Scene(manager, provider, port, folder / "canary")
        undo.callback(made.close)
        yield made
