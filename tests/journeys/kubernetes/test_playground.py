"""`make run CLUSTERS=k8s`: a playground in which one of three clusters is a real Kubernetes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from journeys.federation.stories import eventually
from real.kubernetes import fixtures
from real.playground import Playground, playground

pytestmark = [pytest.mark.deep, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[3]
STAR = "examples/02-federation-star/fdl.yaml"


def hansa(at: Playground, *words: str) -> str:
    command = [sys.executable, "-m", "hansa", *words]
    done = subprocess.run(command, cwd=at.folder, env=at.env, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_star_over_both_kinds(tmp_path: Path) -> None:
    fixtures.require(full=True)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with playground(tmp_path, {"PYTHONPATH": str(ROOT / "tests")}, "real.kubernetes.playground") as started:
        started.wait_for("clusters are ready", 170)
        clusters = {one["id"]: one for one in started.info()["clusters"]}
        riga = httpx.Client(
            base_url=clusters["riga"]["url"],
            auth=(clusters["riga"]["admin_user"], clusters["riga"]["admin_password"]),
            timeout=60,
            trust_env=False,
        )
        with riga:
            assert riga.get("/v1/node").json()["runtime"] == "kubernetes"
            assert riga.get("/system/info").json()["kubernetes_version"].startswith("v1.")
            hansa(started, "apply", "-f", STAR, "--send-credentials")
            definition = {"name": "here", "image": "busybox", "cpu": "0.1", "memory": "32Mi", "script": "echo well"}
            assert riga.post("/system/services", json=definition).status_code == 201
            token = riga.get("/system/services/here").json()["token"]
            with httpx.Client(base_url=riga.base_url, trust_env=False, timeout=60) as caller:
                given = caller.post("/job/here", headers={"Authorization": f"Bearer {token}"}, content=b"x")
            job = given.headers["x-hansa-job"]
            eventually(lambda: riga.get(f"/v1/jobs/{job}").json()["status"] == "Succeeded", 90, "the job's end")
            assert "well" in riga.get(f"/system/logs/here/{job}").text
        listed = json.loads(hansa(started, "service", "ls", "--json"))
        assert "grayify" in json.dumps(listed)
    eventually(lambda: not started.processes(), what="nothing left")
