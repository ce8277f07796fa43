"""The manager's account as the chart makes it, used by somebody who stole it: what does it reach beyond users' pods?

It tries by real calls, in kube-system and in a stranger's namespace, and asks the API server by access reviews. And
with no right but these a manager works, in namespaces that it makes.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy import chart
from deploy.kubernetes.installation import kubectl
from deploy.kubernetes.test_running_services import use
from real.kubernetes import kubernetes_manager
from real.kubernetes.access import Access
from real.kubernetes.fixtures import fresh_namespace
from real.kubernetes.helm_client import Helm
from real.manager import running_manager

pytestmark = pytest.mark.timeout(300)
RIGHTS = ("ServiceAccount", "Namespace", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
CONFINING = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POD = {"spec": {"containers": [{"name": "x", "image": "x"}]}}
SECONDS = 60.0
TRY = "?dryRun=All"  # decided as in earnest, and then not done: should a wall be missing, nothing is harmed


@dataclass
class Stolen:
    """The account's token, and where everything is."""

    door: httpx.Client
    kubeconfig: Path
    own: str  # the manager's namespace
    strangers: str
    cluster: str
    settings: dict[str, Any]

    def binding(self, role: str, *, account: str = "", kind: str = "ClusterRole") -> dict[str, Any]:
        who = {"kind": "ServiceAccount", "name": account or f"{self.own}-hansa", "namespace": self.own}
        named = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        return {"metadata": {"name": f"x-{secrets.token_hex(3)}"}, "roleRef": named, "subjects": [who]}

    def tries(self) -> dict[str, int]:
        """What each attempt is answered, in kube-system and in the stranger's namespace."""
        role = str(self.settings["kubernetes"].get("binding") or "cluster-admin")
        found: dict[str, httpx.Response] = {}
        for space in ("kube-system", self.strangers):
            at = f"/api/v1/namespaces/{space}"
            found |= {
                f"list secrets in {space}": self.door.get(f"{at}/secrets"),
                f"read a secret in {space}": self.door.get(f"{at}/secrets/treasure"),
                f"read a map in {space}": self.door.get(f"{at}/configmaps/kube-root-ca.crt"),
                f"list pods in {space}": self.door.get(f"{at}/pods"),
                f"make a pod in {space}": self.door.post(f"{at}/pods{TRY}", json={"metadata": {"name": "x"}, **POD}),
                f"bind its role in {space}": self.door.post(
                    f"{RBAC}/namespaces/{space}/rolebindings{TRY}", json=self.binding(role)
                ),
                f"take {space} for its own": self.door.patch(
                    f"{at}{TRY}",
                    content=json.dumps({"metadata": {"labels": {"hansa/cluster": self.cluster}}}),
                    headers={"Content-Type": "application/merge-patch+json"},
                ),
                f"take down the walls of {space}": self.door.delete(
                    f"/apis/networking.k8s.io/v1/namespaces/{space}/networkpolicies{TRY}"
                ),
            }
        return {what: answer.status_code for what, answer in found.items()}

    def wider(self) -> dict[str, httpx.Response]:
        everywhere = self.binding("cluster-admin")
        return {
            "all secrets": self.door.get("/api/v1/secrets"),
            "all pods": self.door.get("/api/v1/pods"),
            "cluster-admin for itself": self.door.post(f"{RBAC}/clusterrolebindings{TRY}", json=everywhere),
            "another ClusterRole": self.door.post(
                f"{RBAC}/clusterroles{TRY}", json={"metadata": {"name": "x"}, "rules": []}
            ),
            "a namespace without its mark": self.door.post(
                f"/api/v1/namespaces{TRY}", json={"metadata": {"name": "x-plain"}}
            ),
            "one for pods that may do all": self.door.post(
                f"/api/v1/namespaces{TRY}",
                json={"metadata": {"name": "x-open", "labels": {"hansa/cluster": self.cluster}}},
            ),
            "no confinement": self.door.delete(
                f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/hansa-{self.own}-hansa-bindings{TRY}"
            ),
        }

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        asked = {"verb": verb, "resource": resource, "namespace": namespace}
        review = {"spec": {"resourceAttributes": asked}}
        answer = self.door.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review)
        return bool(answer.json()["status"]["allowed"])


@contextlib.asynccontextmanager
async def stolen(helm: Helm, access: Access, folder: Path, own: str, reach: dict[str, Any]) -> AsyncIterator[Stolen]:
    """The chart's account and rights alone, without the manager."""
    cluster = f"c-{secrets.token_hex(4)}"
    values = {
        "cluster": {"id": cluster},
        "kubernetes": reach,
        "fullnameOverride": f"{own}-hansa",
        "settings": {"cluster": {"services_namespace": f"svc-{cluster[2:]}"}},
    }
    made = chart.rendered(helm, values, own)
    rights = [one for one in made if one["kind"] in (*RIGHTS, *CONFINING)]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": rights})
    async with fresh_namespace(access) as strangers:
        try:
            told = await asyncio.to_thread(kubectl, access, "apply", "-f", "-", given=given)
            assert told.returncode == 0, told.stderr
            at = ("-n", strangers)
            treasure = ("create", "secret", "generic", "treasure", "--from-literal=a=b")
            assert (await asyncio.to_thread(kubectl, access, *at, *treasure)).returncode == 0
            file = folder / "stolen"
            token = await asyncio.to_thread(kubectl, access, "-n", own, "create", "token", f"{own}-hansa")
            assert token.returncode == 0, token.stderr
            config = json.loads(access.kubeconfig.read_text())
            config["users"][0]["user"] = {"token": token.stdout.strip()}
            file.write_text(json.dumps(config))
            with access.http() as door:
                door.headers["Authorization"] = f"Bearer {token.stdout.strip()}"
                found = Stolen(door, file, own, strangers, cluster, chart.settings_of(made))
                if any(one["kind"] in CONFINING for one in rights):
                    await confined(found)
                yield found
        finally:
            await asyncio.to_thread(kubectl, access, "delete", "--wait=false", "-f", "-", given=given)
            await kubernetes_manager.clear(access, cluster)


async def confined(found: Stolen) -> None:
    """An API server takes a moment to hold somebody to a new policy."""
    plain = {"metadata": {"name": f"x-{secrets.token_hex(4)}"}}
    async with asyncio.timeout(SECONDS):
        while True:
            answer = found.door.post(f"/api/v1/namespaces{TRY}", json=plain)
            bound = found.door.post(
                f"{RBAC}/namespaces/{found.strangers}/rolebindings{TRY}",
                json=found.binding(str(found.settings["kubernetes"]["binding"])),
            )
            if {answer.status_code, bound.status_code} <= {403, 422}:
                return
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("reach", ["given", "made"])
async def test_a_stolen_account_reaches_nothing_beyond_users_namespaces(
    helm: Helm, kubernetes: Access, kubernetes_namespace: str, tmp_path: Path, reach: str
) -> None:
    async with stolen(helm, kubernetes, tmp_path, kubernetes_namespace, {"reach": reach}) as account:
        answered = await asyncio.to_thread(account.tries)
        assert {what: code for what, code in answered.items() if code not in (403, 422)} == {}
        wider = await asyncio.to_thread(account.wider)
        assert {what: one.text for what, one in wider.items() if one.status_code not in (403, 422)} == {}
        for space in ("kube-system", account.strangers, "default"):
            for verb, resource in (("get", "secrets"), ("list", "secrets"), ("create", "pods"), ("create", "jobs")):
                assert not await asyncio.to_thread(account.may, verb, resource, space)
        assert account.door.get("/api/v1/nodes").status_code == 200


async def test_a_manager_works_in_namespaces_that_it_makes_with_these_rights_alone(
    helm: Helm, kubernetes: Access, kubernetes_namespace: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(kubernetes_manager.bring_images, kubernetes)
    kubernetes_manager.reach_pods(kubernetes)
    async with stolen(helm, kubernetes, tmp_path, kubernetes_namespace, {"reach": "made"}) as account:
        told = account.settings
        settings = {
            **kubernetes_manager.settings_for(kubernetes),
            "cluster.id": account.cluster,
            "cluster.services_namespace": told["cluster"]["services_namespace"],
            "kubernetes.kubeconfig": str(account.kubeconfig),
            "kubernetes.namespace": account.own,
            "kubernetes.binding": told["kubernetes"]["binding"],
        }
        await asyncio.to_thread(live, settings)
        # What it made is its own, and the account had its rights there; a stranger's is still none of it.
        assert await asyncio.to_thread(account.may, "create", "pods", told["cluster"]["services_namespace"])
        assert not await asyncio.to_thread(account.may, "create", "pods", account.strangers)


def live(settings: dict[str, Any]) -> None:
    with running_manager(settings) as manager:
        use(manager.admin)
        manager.restart()
        names = {one["name"] for one in manager.admin.get("/system/services").json()}
        assert names == {"count", "hello"}
