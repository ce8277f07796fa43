"""Do the chart, the page and the code agree on what a manager may do, and is it what the driver calls?"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.core import resource as lightkube

from deploy import chart
from hansa.drivers.kubernetes import rights
from hansa.drivers.kubernetes.rights import Right, Scope
from real.kubernetes.helm_client import Helm

DRIVER = Path(rights.__file__).parent
PAGE = chart.ROOT / "docs" / "reference" / "kubernetes-rights.md"
ROW = re.compile(r"^\| `(?P<group>[^`]*)` \| `(?P<resource>[^`]+)` \| (?P<verbs>[a-z, ]+) \| (?P<why>.+) \|$")
# What each word of `connection.Connection` asks of the API server; an apply may have to create.
WORDS = {
    "get": {"get"},
    "list": {"list"},
    "merge": {"patch"},
    "delete": {"delete"},
    "create": {"create"},
    "apply": {"create", "patch"},
    "replace": {"update"},
}

Rule = tuple[str, str, frozenset[str]]


def table(*scopes: Scope) -> set[Rule]:
    return {(one.group, one.resource, frozenset(one.verbs)) for one in rights.RIGHTS if one.scope in scopes}


def rules_of(role: dict[str, Any]) -> set[Rule]:
    return {
        (group, resource, frozenset(rule["verbs"]))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def bound(made: list[dict[str, Any]]) -> set[Rule]:
    """What the account may do in the whole cluster."""
    roles = {one["metadata"]["name"]: rules_of(one) for one in made if one["kind"] == "ClusterRole"}
    named = [one["roleRef"]["name"] for one in made if one["kind"] == "ClusterRoleBinding"]
    return {rule for name in named for rule in roles[name]}


def test_a_manager_reads_no_secret_and_makes_no_pod_beyond_its_namespaces(helm: Helm) -> None:
    """As the chart is; and so with namespaces that the manager makes."""
    made = chart.rendered(helm, {})
    assert bound(made) == table(Scope.LOOK)
    by_place = {one["metadata"]["namespace"]: rules_of(one) for one in made if one["kind"] == "Role"}
    assert by_place == {chart.NAMESPACE: table(Scope.OWN), "oscar-svc": table(Scope.USERS)}
    work = chart.only(made, "Namespace")["metadata"]
    assert work["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert work["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert chart.settings_of(made)["kubernetes"]["namespaces"] == ["oscar-svc"]


def test_a_manager_that_makes_namespaces_has_rights_in_these_alone(helm: Helm) -> None:
    made = chart.rendered(helm, {"kubernetes": {"reach": "made"}})
    assert bound(made) == table(Scope.LOOK, Scope.CLUSTER, Scope.BIND)
    name = chart.settings_of(made)["kubernetes"]["binding"]
    assert rules_of(chart.only(made, "ClusterRole", name)) == table(Scope.MADE, Scope.USERS)
    (bind,) = [rule for one in made if one["kind"] == "ClusterRole" for rule in one["rules"] if "bind" in rule["verbs"]]
    assert bind["resourceNames"] == [name]
    confined = [one for one in made if one["kind"] == "ValidatingAdmissionPolicy"]
    enforced = [one["spec"] for one in made if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {one["policyName"] for one in enforced} == {one["metadata"]["name"] for one in confined}
    assert len(confined) == 2
    assert all(one["validationActions"] == ["Deny"] for one in enforced)


def test_a_manager_for_all_namespaces_has_these_rights_only_when_it_is_chosen(helm: Helm) -> None:
    made = chart.rendered(helm, {"kubernetes": {"reach": "cluster"}})
    assert bound(made) == table(Scope.LOOK, Scope.CLUSTER, Scope.MADE, Scope.USERS)
    assert rules_of(chart.only(made, "Role")) == table(Scope.OWN)


def test_a_manager_for_some_namespaces_has_none_beyond(helm: Helm) -> None:
    jobs = {"jobs": {"cpu": "2", "memory": "2Gi"}}
    given = {"kubernetes": {"namespaces": ["north", "south"]}, "rbac": {"nodes": False}, "settings": jobs}
    made = chart.rendered(helm, given)
    assert not {"ClusterRole", "ClusterRoleBinding", "Namespace"} & chart.kinds(made)
    by_place = {one["metadata"]["namespace"]: rules_of(one) for one in made if one["kind"] == "Role"}
    assert by_place == {
        chart.NAMESPACE: table(Scope.OWN),
        "north": table(Scope.USERS),
        "south": table(Scope.USERS),
    }
    bound = {one["metadata"]["namespace"] for one in made if one["kind"] == "RoleBinding"}
    assert bound == set(by_place)


def test_a_hub_has_no_rights(helm: Helm) -> None:
    made = chart.rendered(helm, {"role": "hub"})
    assert not {"Role", "ClusterRole"} & chart.kinds(made)
    assert chart.pod_of(made)["automountServiceAccountToken"] is False


def test_the_page_tells_the_same() -> None:
    found: dict[str, set[tuple[str, str, tuple[str, ...], str]]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if row := ROW.match(line):
            verbs = tuple(row["verbs"].split(", "))
            found.setdefault(heading, set()).add((row["group"], row["resource"], verbs, row["why"]))
    headings = {
        Scope.LOOK: "What it may look at",
        Scope.CLUSTER: "To make namespaces",
        Scope.BIND: "To have rights in these alone",
        Scope.MADE: "In namespaces that it makes",
        Scope.USERS: "In users' namespaces",
        Scope.OWN: "In the manager's own namespace",
    }
    for scope, named in headings.items():
        wanted = {
            (one.group or "core", one.resource, one.verbs, one.why) for one in rights.RIGHTS if one.scope is scope
        }
        assert found[named] == wanted


def test_the_comments_of_the_chart_tell_why() -> None:
    text = (chart.CHART / "templates" / "_rights.tpl").read_text()
    for right in rights.RIGHTS:
        assert f"# {right.why[0].upper()}{right.why[1:]}.\n" in text


def calls() -> Iterator[tuple[str, type[Any], str]]:
    """Where the driver names a kind of object, and the word it is asked with ("" where it is only named)."""
    for path in sorted(DRIVER.rglob("*.py")):
        tree = ast.parse(path.read_text())
        named: dict[str, type[Any]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lightkube.resources"):
                module = __import__(str(node.module), fromlist=["x"])
                named |= {one.asname or one.name: getattr(module, one.name) for one in node.names}
        for kind in named.values():
            yield path.name, kind, ""
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            first, word = node.args[0], node.func.attr
            if isinstance(first, ast.Name) and first.id in named and word in WORDS:
                yield path.name, named[first.id], word


def test_every_call_of_the_driver_has_its_right() -> None:
    verbs: dict[tuple[str, str], set[str]] = {}
    for right in rights.RIGHTS:
        verbs.setdefault((right.group, right.resource), set()).update(right.verbs)
    missing = []
    for where, kind, word in calls():
        info = lightkube.api_info(kind)
        assert info is not None
        about = (info.resource.group, info.plural)
        if about not in verbs or not WORDS.get(word, set()) <= verbs[about]:
            missing.append(f"{where}: {word or 'names'} {about[1]}.{about[0]}")
    assert not missing, f"say in drivers/kubernetes/rights.py why these are needed: {missing}"


def test_rights_are_asked_for_one_by_one() -> None:
    right = Right(Scope.USERS, "", "pods/log", ("get", "list"), "why")
    assert list(right.reviews("north")) == [
        {"verb": "get", "group": "", "resource": "pods", "subresource": "log", "namespace": "north"},
        {"verb": "list", "group": "", "resource": "pods", "subresource": "log", "namespace": "north"},
    ]
    everywhere = Right(Scope.CLUSTER, "", "nodes", ("list",), "why")
    assert list(everywhere.reviews("north")) == [{"verb": "list", "group": "", "resource": "nodes"}]
    one = Right(Scope.BIND, "x", "clusterroles", ("bind",), "why", only="sailor")
    assert list(one.reviews("")) == [{"verb": "bind", "group": "x", "resource": "clusterroles", "name": "sailor"}]


@pytest.mark.parametrize(
    ("namespaces", "binding", "not_needed"),
    [
        ((), "", {Scope.BIND}),
        ((), "sailor", set()),
        (("north",), "", {Scope.CLUSTER, Scope.BIND, Scope.MADE}),
    ],
)
def test_what_is_needed_depends_on_where(namespaces: tuple[str, ...], binding: str, not_needed: set[Scope]) -> None:
    found = rights.needed(namespaces, binding)
    assert {one.scope for one in found} == set(Scope) - not_needed
    assert [one.only for one in found if one.resource == "clusterroles"] == ([binding] if binding else [])
