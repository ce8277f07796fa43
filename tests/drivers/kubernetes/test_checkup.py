"""What is said of a Kubernetes before a manager is put to work with it: on a real API server, from the driver to the
command line."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lightkube import AsyncClient
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.core_v1 import NodeCondition, NodeStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, ServiceAccount
from lightkube.resources.storage_v1 import StorageClass

from hansa.drivers.kubernetes import checkup
from hansa.drivers.kubernetes.checkup import Finding, Wanted
from real.kubernetes.access import Access
from real.kubernetes.cluster import KubernetesCluster
from real.kubernetes.fixtures import fresh_namespace


@pytest.fixture
def access(kubernetes_api: KubernetesCluster) -> Access:
    return kubernetes_api.access


@pytest.fixture
async def api(access: Access) -> AsyncIterator[AsyncClient]:
    async with access.client() as opened:
        yield opened


@pytest.fixture
async def furnished(api: AsyncClient) -> AsyncIterator[None]:
    """A node that says it is ready, and a class for volumes; the API server of this file has neither."""
    amounts = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
    about = ObjectMeta(name="node-1", labels={"disk": "fast"})
    status = NodeStatus(conditions=[NodeCondition(type="Ready", status="True")], allocatable=amounts)
    await api.create(Node(metadata=about))
    seen = Node.Status(apiVersion="v1", kind="Node", metadata=about, status=status)
    await api.apply(seen, field_manager="test")  # type: ignore[call-overload]
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    named = ObjectMeta(name="fast", annotations=marked)
    await api.create(StorageClass(metadata=named, provisioner="example.org/disk", reclaimPolicy="Retain"))
    yield
    await api.delete(Node, "node-1")
    await api.delete(StorageClass, "fast")


@pytest.fixture
async def stranger(api: AsyncClient, access: Access, tmp_path: Path) -> AsyncIterator[Path]:
    """A kubeconfig of an account that may do nothing."""
    async with fresh_namespace(access) as namespace:
        asked = ServiceAccount.Token(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[]))
        given = await api.create(asked, "default", namespace=namespace)
        assert given.status is not None
        assert given.status.token is not None
        yield _with_token(access, tmp_path / "stranger", given.status.token)


def _with_token(access: Access, file: Path, token: str) -> Path:
    config = json.loads(access.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file.write_text(json.dumps(config))
    return file


async def by_name(wanted: Wanted) -> dict[str, Finding]:
    return {one.name: one for one in await checkup.findings(wanted)}


@pytest.mark.usefixtures("furnished")
async def test_all_is_well_for_who_may_do_everything(access: Access) -> None:
    found = await by_name(Wanted(kubeconfig=access.kubeconfig, image="hansa:1", own_namespace="kube-system"))
    assert [one for one in found.values() if one.ok is False] == []
    assert found["account"].detail == "admin"
    assert "native sidecars" in found["server"].detail
    assert found["rights"].ok
    assert found["nodes"].detail == "1 of 1 ready, 1 for us: 4000m cpu, 8Gi memory"
    assert found["gpu"].ok
    assert "fast (example.org/disk); contents of removed volumes are kept" in found["volumes"].detail
    assert (found["metrics"].ok, found["ingress"].ok) == (None, None)
    assert found["kueue"].detail.startswith("not there; not needed")
    assert all(one.hint for one in found.values() if one.ok is None)


@pytest.mark.usefixtures("furnished")
async def test_what_the_settings_name_has_to_be_there(access: Access) -> None:
    wanted = Wanted(
        kubeconfig=access.kubeconfig,
        namespaces=("north", "default"),
        pull_secrets=("harbour",),
        storage_class="slow",
        priority_class="high",
        node_selector={"disk": "slow"},
    )
    found = await by_name(wanted)
    failed = {name for name, one in found.items() if one.ok is False}
    assert failed == {"volumes", "priority class", "nodes", "namespaces", "pull secrets"}
    assert "kubectl -n north create secret docker-registry harbour" in found["pull secrets"].hint
    assert "there are: fast" in found["volumes"].hint
    assert "kubectl create namespace north" in found["namespaces"].hint
    assert "node_selector" in found["nodes"].hint
    assert found["image"].ok is None
    open_one = (await by_name(replace(wanted, namespaces=("default",), own_namespace="kube-system")))["namespaces"]
    assert (open_one.ok, "enforce=restricted" in open_one.hint) == (None, True)


async def test_nothing_there_is_said_with_what_will_not_work(access: Access) -> None:
    found = await by_name(Wanted(kubeconfig=access.kubeconfig))
    assert found["nodes"].ok is False
    assert (found["volumes"].ok, "wait for ever" in found["volumes"].hint) == (None, True)
    assert "enable_gpu" in found["gpu"].hint
    assert found["namespaces"].detail == "the manager's own, hansa, is not there"


async def test_an_account_without_rights_hears_which(stranger: Path) -> None:
    found = await by_name(Wanted(kubeconfig=stranger))
    assert "system:serviceaccount" in found["account"].detail
    jobs = found["right jobs.batch"]
    assert jobs.ok is False
    assert "may not get, list, watch, create, patch" in jobs.detail
    assert jobs.hint
    assert {"right secrets", "right pods", "right pods/log", "right namespaces", "right nodes"} <= found.keys()
    assert "update in hansa: one of several managers" in found["right leases.coordination.k8s.io in hansa"].detail
    assert found["nodes"].ok is None
    assert "rights" not in found


async def test_rights_are_asked_for_in_the_namespaces_that_are_given(stranger: Path) -> None:
    found = await by_name(Wanted(kubeconfig=stranger, namespaces=("north", "south")))
    assert "get, list, watch, create, patch, delete in north; get, list" in found["right secrets"].detail
    assert "delete in south: " in found["right configmaps"].detail
    assert "right secrets in hansa" in found
    assert found["right nodes"].ok is None  # how much there is can be said by the settings


@pytest.mark.parametrize("text", ["", "{: [", "hello", '{"clusters": [], "contexts": []}'])
async def test_a_file_that_is_no_kubeconfig_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    (only,) = await checkup.findings(Wanted(kubeconfig=file))
    assert (only.name, only.ok) == ("kubeconfig", False)
    assert "cannot be used" in only.detail
    assert only.hint


async def test_a_missing_file_or_context_is_named(access: Access, tmp_path: Path) -> None:
    (missing,) = await checkup.findings(Wanted(kubeconfig=tmp_path / "none"))
    assert "none not found" in missing.detail
    (wrong,) = await checkup.findings(Wanted(kubeconfig=access.kubeconfig, context="elsewhere"))
    assert "elsewhere" in wrong.detail
    (outside,) = await checkup.findings(Wanted(kubeconfig=None))
    assert "--kubeconfig" in outside.hint


async def test_credentials_that_nobody_knows_are_said_to_be_unknown(access: Access, tmp_path: Path) -> None:
    found = await checkup.findings(Wanted(kubeconfig=_with_token(access, tmp_path / "config", "unknown")))
    assert (found[-1].name, found[-1].ok) == ("server", False)
    assert "expired" in found[-1].hint


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
async def test_something_else_at_that_address_is_no_kubernetes(access: Access, tmp_path: Path, status: str) -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as web:
        config = json.loads(access.kubeconfig.read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}"}
        (tmp_path / "config").write_text(json.dumps(config))
        found = await checkup.findings(Wanted(kubeconfig=tmp_path / "config"))
    assert (found[-1].name, found[-1].ok) == ("server", False)
    assert "API server" in found[-1].hint


@pytest.mark.parametrize(
    ("version", "ok"), [("v1.28.3", False), ("v1.29.0-eks-1", True), ("v1.99.0", True), ("", False)]
)
def test_versions_we_know(version: str, ok: bool) -> None:
    found = checkup.server(version)
    assert found.ok is ok
    assert ("newer than what we have tried" in found.detail) == (version == "v1.99.0")


def doctor(tmp_path: Path, *words: str) -> tuple[int, str, str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("HANSA_")}
    env |= {"HANSA_DATA": str(tmp_path / "data"), "HANSA_KUBERNETES__IMAGE": "hansa:1"}
    env |= {"HANSA_HTTP__PORT": str(free_port()), "HANSA_KUBERNETES__NAMESPACE": "kube-system"}
    command = [sys.executable, "-m", "hansa", "doctor", *words]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, done.stdout, done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.usefixtures("furnished")
def test_the_command_prints_it_for_people_and_for_programs(access: Access, tmp_path: Path) -> None:
    named = ("--driver", "kubernetes", "--kubeconfig", str(access.kubeconfig))
    code, out, err = doctor(tmp_path, *named)
    assert code == 0, out + err
    shown = {line.split()[0] for line in out.splitlines()}
    assert {"python", "kubeconfig", "server", "rights", "volumes", "metrics"} <= shown
    assert "isolation" not in shown
    assert "metrics: the status counts what pods requested" in err
    assert "pods' store: jobs with files would fail" in err
    code, out, _ = doctor(tmp_path, *named, "--json")
    rows: list[dict[str, Any]] = json.loads(out)
    assert (code, {"name": "rights", "ok": True} in [{k: row[k] for k in ("name", "ok")} for row in rows]) == (0, True)


def test_the_command_fails_where_there_is_no_server(access: Access, tmp_path: Path) -> None:
    config = json.loads(access.kubeconfig.read_text())
    with socket.socket() as held:  # bound and not listening: refused at once
        held.bind(("127.0.0.1", 0))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{held.getsockname()[1]}"
        file = tmp_path / "config"
        file.write_text(json.dumps(config))
        code, out, err = doctor(tmp_path, "--kubeconfig", str(file))
    assert code == 1
    assert "does not answer" in out
    assert err.splitlines()[-1].startswith("hint: is it there")
