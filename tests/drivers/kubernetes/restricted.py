"""An account with rights in some namespaces alone, as one has who was given a part of a Kubernetes."""

import json
from pathlib import Path

from lightkube import AsyncClient
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.rbac_v1 import PolicyRule, RoleRef, Subject
from lightkube.resources.core_v1 import Namespace, ServiceAccount
from lightkube.resources.rbac_authorization_v1 import Role, RoleBinding

from real.kubernetes.access import Access

ALL = ["get", "list", "watch", "create", "patch", "delete"]


async def account(api: AsyncClient, access: Access, file: Path, rules: dict[str, list[str]]) -> Path:
    """A kubeconfig of it. `rules` say which kinds it may touch where; the first namespace is where it lives."""
    home = next(iter(rules))
    for namespace in rules:
        await api.create(Namespace(metadata=ObjectMeta(name=namespace)))
    await api.create(ServiceAccount(metadata=ObjectMeta(name="manager", namespace=home)))
    for namespace, kinds in rules.items():
        about = ObjectMeta(name="manager", namespace=namespace)
        await api.create(Role(metadata=about, rules=[PolicyRule(apiGroups=[""], resources=kinds, verbs=ALL)]))
        whom = [Subject(kind="ServiceAccount", name="manager", namespace=home)]
        role = RoleRef(apiGroup="rbac.authorization.k8s.io", kind="Role", name="manager")
        await api.create(RoleBinding(metadata=about, roleRef=role, subjects=whom))
    asked = ServiceAccount.Token(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[]))
    given = await api.create(asked, "manager", namespace=home)
    assert given.status is not None
    config = json.loads(access.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": given.status.token}
    file.write_text(json.dumps(config))
    return file
