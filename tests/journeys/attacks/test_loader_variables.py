"""No variable of a tenant makes a program outside of the sandbox do anything, whoever runs the manager.

The system's loader writes a file where `LD_DEBUG_OUTPUT` says. The folder that is named here exists outside only, so
whatever appears in it was written by a program that sees the machine: the one that builds the walls.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from journeys.conftest import signing_in
from journeys.waiting import run_job
from real import parts
from real.identity_provider import IdentityProvider
from real.manager import running_manager, trusting


@pytest.fixture(scope="module", params=WHOSE_MANAGER)
def alice(request: pytest.FixtureRequest, sign_in_provider: IdentityProvider) -> Iterator[httpx.Client]:
    parts.require("bubblewrap")
    with running_manager(trusting(sign_in_provider), user=as_user(request.param)) as running:
        yield signing_in(running, sign_in_provider)("alice")


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder everybody may write to, outside of every sandbox."""
    folder = Path(tempfile.mkdtemp(prefix="hansa-outside-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def definition(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"lure-{number}", "image": "debian", "memory": "64Mi", "script": "env", **more}


def test_the_loader_writes_nothing_outside(alice: httpx.Client, outside: Path) -> None:
    loading = {"LD_DEBUG": "all", "LD_DEBUG_OUTPUT": f"{outside}/loaded"}
    good = definition(0)
    assert alice.post("/system/services", json=good).status_code == 201
    lures = [{"environment": {kind: loading}, **held} for kind in ("variables", "secrets") for held in (
        {}, {"synchronous": {"min_scale": 1}})]  # fmt: skip
    for number, lure in enumerate(lures, 1):
        made = alice.post("/system/services", json=definition(number, **lure))
        assert made.status_code in (201, 400), made.text
        if made.status_code == 201:
            run_job(alice, f"lure-{number}")
            alice.post(f"/run/lure-{number}", content=b"x")
        changed = alice.put("/system/services", json={**good, **lure})
        assert changed.status_code in (204, 400), changed.text
        run_job(alice, "lure-0")
    assert [path.name for path in outside.iterdir()] == []


def test_a_script_may_still_use_them_for_its_own_programs(alice: httpx.Client) -> None:
    made = definition(9, script="LD_DEBUG=libs LD_DEBUG_OUTPUT=/tmp/loaded /bin/true; ls /tmp")
    assert alice.post("/system/services", json=made).status_code == 201
    assert "loaded." in run_job(alice, "lure-9")
