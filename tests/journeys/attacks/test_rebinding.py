"""A name that led to the open when a service was created leads to this machine when its job runs.

The manager has a file of names of its own, which a tenant's name server would be otherwise; it changes between the two.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from journeys.waiting import run_job
from real import parts
from real.identity_provider import IdentityProvider
from real.listener import listener
from real.manager import ROOMY, Manager, free_port, leased_uids, trusting
from real.postgres import tied_to_us

KEYS = {"access_key": "AK", "secret_key": "SK", "region": "us-east-1"}
BEFORE = "93.184.216.34"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file over another")


@dataclass(slots=True)
class WithNames(Manager):
    """Its machine's file of names is `hosts` in its folder."""

    def start(self) -> None:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        private = ["unshare", "--mount", "--propagation", "private", "--"]
        mounting = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(self.folder / "hosts")]
        program = [str(Path(sys.executable).with_name("hansa")), "server"]
        with (self.folder / "manager.log").open("ab") as said:
            self._process = subprocess.Popen(
                [*tied_to_us(), *private, *mounting, *program],
                cwd=self.folder,
                env={**variables, **self._variables(), "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._await_ready()

    def leads(self, name: str, address: str) -> None:
        with (self.folder / "hosts").open("w") as file:  # the same file, for it is mounted
            file.write(f"127.0.0.1 localhost\n{address} {name}\n")


@contextlib.contextmanager
def manager_with_names(settings: dict[str, Any]) -> Iterator[WithNames]:
    folder = Path(tempfile.mkdtemp(prefix="hansa-manager-"))
    folder.chmod(0o711)
    with leased_uids() as uids:
        made = WithNames(folder, free_port(), {**ROOMY, **settings, "sandbox.uid_base": uids})
        made.leads("rebinding.test", BEFORE)
        try:
            made.start()
            yield made
            made.stop()
        finally:
            made.close()
            shutil.rmtree(folder, ignore_errors=True)


@needs_root
@pytest.mark.parametrize("later", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
def test_a_name_that_leads_elsewhere_by_now_is_judged_again(sign_in_provider: IdentityProvider, later: str) -> None:
    parts.require("bubblewrap")
    with listener() as trap, manager_with_names(trusting(sign_in_provider)) as own:
        alice = own.bearer(sign_in_provider.token("alice"))
        url = f"http://rebinding.test:{trap.url.rpartition(':')[2]}"
        for kind in ("webdav", "s3", "minio"):
            own.leads("rebinding.test", BEFORE)
            given = {"hostname": url, "login": "a", "password": "b"} if kind == "webdav" else {"endpoint": url, **KEYS}
            definition = {
                "name": f"rebinding-{kind}",
                "image": "debian",
                "memory": "64Mi",
                "script": "echo secret >$TMP_OUTPUT_DIR/x",
                "output": [{"storage_provider": f"{kind}.evil", "path": "bucket/out"}],
                "storage_providers": {kind: {"evil": given}},
            }
            answer = alice.post("/system/services", json=definition)
            assert answer.status_code == 201, answer.text
            own.leads("rebinding.test", later)
            log = run_job(alice, f"rebinding-{kind}")
            assert "does not call" in log, log
            again = alice.post("/system/services", json={**definition, "name": f"again-{kind}"})
            assert again.status_code == 400, again.text
        assert trap.visits == []
