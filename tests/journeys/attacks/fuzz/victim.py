"""Bob, whose things lie beside those of a hostile tenant: a bucket, a service with a secret and a volume, a page.

`secrets` is what nobody else may ever read, `holdings` everything that nobody else may change.
"""

import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

import httpx

from journeys import exposing
from journeys.attacks.fuzz import belongings
from journeys.objects import make_bucket, store_of, upload
from journeys.waiting import all_jobs, run_job
from real.manager import Manager

SERVICE, PAGE, BUCKET, VOLUME, NAMESPACE = "bobs-service", "bobs-page", "bobs-own", "bobs-volume", "oscar-svc-bob-test"


class Bob:
    def __init__(self, manager: Manager, client: httpx.Client, canary: Path) -> None:
        self._manager, self._client, self._canary = manager, client, canary
        self._store = store_of(client)
        self._mark = {
            what: f"bobs-{what}-{secrets.token_hex(8)}"
            for what in ("object", "output", "variable", "volume", "script", "page", "log", "file")
        }
        self.furnish()

    def close(self) -> None:
        self._store.close()

    def furnish(self) -> None:
        """From the start, whatever became of it before."""
        bob, mark = self._client, self._mark
        belongings.removed(bob, "bob@test")
        self._canary.write_text(mark["file"])
        self._canary.chmod(0o644)
        make_bucket(bob, BUCKET, "in/x", mark["object"].encode())
        upload(bob, BUCKET, "out/y", mark["output"].encode())
        service = {
            "name": SERVICE,
            "image": "debian",
            "memory": "64Mi",
            "cpu": "0.1",
            "script": f"# {mark['script']}\necho {mark['volume']} >/data/kept; echo {mark['log']}",
            "environment": {"secrets": {"BOBS": mark["variable"]}},
            "volume": {"name": VOLUME, "size": "1Gi", "mount_path": "/data"},
            "input": [{"storage_provider": "minio", "path": f"{BUCKET}/in"}],
        }
        assert bob.post("/system/services", json=service).status_code == 201
        assert mark["log"] in run_job(bob, SERVICE)
        page = {
            "name": PAGE,
            "image": "debian",
            "script": exposing.script(8080),
            **exposing.definition(visibility="private", environment={"variables": {"VERSION": mark["page"]}}),
        }
        assert bob.post("/system/services", json=page).status_code == 201
        exposing.ready(bob, PAGE)
        self.job = next(iter(all_jobs(bob, SERVICE)))

    def secrets(self) -> dict[str, str]:
        """By what it is; what the manager itself keeps from all tenants is among them."""
        tokens = {name: self._client.get(f"/system/services/{name}").json()["token"] for name in (SERVICE, PAGE)}
        store = self._client.get("/system/config").json()["minio_provider"]["secret_key"]
        root = json.loads((self._manager.data / "objects" / "keys.json").read_text())
        return {
            **self._mark,
            **{f"token of {name}": token for name, token in tokens.items()},
            "bob's store key": store,
            "bob's sign-in": self._client.headers["authorization"].split()[1],
            "admin's password": self._manager.password,
            "manager's vault key": (self._manager.data / "vault.key").read_text().strip(),
            "store's root key": next(text for name, text in _texts(root) if "secret" in name.lower()),
        }

    def used(self) -> Any:
        """Of his quota. The bytes of his buckets are counted now and then; objects are compared one by one."""
        quota = self._client.get("/system/quotas/user").json()
        del quota["minio"]["storage_total"]
        return quota

    def holdings(self) -> dict[str, Any]:
        bob = self._client
        held = {what: bob.get(f"/system/{what}").json() for what in ("services", "buckets", "volumes")}
        held["services"] = [one for one in held["services"] if one["owner"] == "bob@test"]
        held["quota"] = self.used()
        listed = self._store.list_objects_v2(Bucket=BUCKET)["Contents"]
        held["objects"] = [(one["Key"], one["ETag"], one["LastModified"]) for one in listed]
        held["jobs"] = {name: all_jobs(bob, name) for name in (SERVICE, PAGE)}
        held["page's process"] = bob.get(exposing.at(PAGE, "/x")).json()["life"]
        held["credentials"] = bob.get(f"/v1/services/{SERVICE}/credentials").json()
        kept = self._manager.data / "volumes" / NAMESPACE
        held["files"] = {
            str(file): _digest(file) for file in (*sorted(kept.rglob("*")), self._canary) if file.is_file()
        }
        folder = self._canary.parent
        held["beside"] = sorted(file.name for file in folder.iterdir())
        held["data"] = sorted(
            file.name for file in self._manager.data.iterdir() if not file.name.startswith("hansa.db")
        )
        return held


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _texts(document: Any, name: str = "") -> Any:
    if isinstance(document, dict):
        for key, item in document.items():
            yield from _texts(item, key)
    elif isinstance(document, list):
        for item in document:
            yield from _texts(item, name)
    elif isinstance(document, str):
        yield name, document
