"""No variable of a tenant makes a program outside of the sandbox do anything, whoever runs the manager.

The system's loader writes a file where `LD_DEBUG_OUTPUT` says. The folder that is named here exists outside only, so
whatever appears in it was written by a program that sees the machine: the one that builds the walls.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from drivers.local.sandbox.test_loader import LOADER
from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from journeys.conftest import signing_in
from journeys.waiting import run_job
from real import parts
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting


@pytest.fixture(scope="module", params=WHOSE_MANAGER)
def own(request: pytest.FixtureRequest, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    parts.require("bubblewrap")
    with running_manager(trusting(sign_in_provider), user=as_user(request.param)) as running:
        yield running


@pytest.fixture
def alice(own: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return signing_in(own, sign_in_provider)("alice")


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


def test_a_service_from_before_they_were_refused_runs_inside_only(
    own: Manager, alice: httpx.Client, outside: Path
) -> None:
    """Its definition is in the database as an earlier release wrote it: now the walls alone hold."""
    names = {"XX_DEBUG": "all", "XX_DEBUG_OUTPUT": f"{outside}/loaded", "XX_LIBRARY_PATH": str(outside)}
    old = definition(7, script="/bin/true; env", environment={"variables": names}, synchronous={"min_scale": 1})
    assert alice.post("/system/services", json=old).status_code == 201
    own.stop()
    with contextlib.closing(sqlite3.connect(own.data / "hansa.db")) as database, database:
        renamed = "UPDATE services SET definition = replace(definition, 'XX_', 'LD_') WHERE name = 'lure-7'"
        assert database.execute(renamed).rowcount == 1
    own.start()
    log = run_job(alice, "lure-7")
    assert f"LD_DEBUG_OUTPUT={outside}/loaded" in log  # the script has them
    assert alice.post("/run/lure-7", content=b"x").status_code == 200
    assert [path.name for path in outside.iterdir()] == []


def test_every_variable_that_a_loader_heeds_is_refused_or_harmless(alice: httpx.Client, outside: Path) -> None:
    for number, (name, value) in enumerate(LOADER.items(), 100):
        for kind in ("variables", "secrets"):
            lure = definition(
                number, environment={kind: {name: value.replace("/job", str(outside))}}, script="echo ran"
            )
            made = alice.post("/system/services", json=lure)
            if name.startswith(("LD_", "GLIBC_")):
                assert made.status_code == 400, name
                assert name in made.text
                continue
            assert made.status_code == 201, made.text
            assert "ran" in run_job(alice, lure["name"]), name
            assert alice.delete(f"/system/services/{lure['name']}").status_code == 204
    assert [path.name for path in outside.iterdir()] == []


def test_a_script_may_still_use_them_for_its_own_programs(alice: httpx.Client) -> None:
    made = definition(9, script="LD_DEBUG=libs LD_DEBUG_OUTPUT=/tmp/loaded /bin/true; ls /tmp")
    assert alice.post("/system/services", json=made).status_code == 201
    assert "loaded." in run_job(alice, "lure-9")
