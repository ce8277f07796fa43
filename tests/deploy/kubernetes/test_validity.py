"""Does a real API server take everything the chart can make, without a word that it does not know?"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import chart
from deploy.kubernetes.installation import kubectl
from deploy.test_chart import VARIANTS
from real.kubernetes.access import Access
from real.kubernetes.helm_client import Helm

MANIFESTS = sorted((chart.ROOT / "deploy" / "manifests").glob("*.yaml"))


def tried(access: Access, objects: list[dict[str, Any]]) -> str:
    """What the server says against them; nothing is made."""
    known = [one for one in objects if one["kind"] != "HTTPRoute"]  # no part of Kubernetes itself
    made = {one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"}
    for one in known:
        if one["metadata"].get("namespace") in made:
            one["metadata"]["namespace"] = "default"  # one that is there
    told = json.dumps({"apiVersion": "v1", "kind": "List", "items": known})
    done = kubectl(access, "create", "--dry-run=server", "--validate=strict", "--filename", "-", given=told)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_server_takes_what_the_chart_makes(
    helm: Helm, kubernetes: Access, kubernetes_namespace: str, values: dict[str, Any]
) -> None:
    given = copy.deepcopy(values)
    if given.get("kubernetes", {}).get("namespaces"):
        given["kubernetes"]["namespaces"] = ["default"]  # one that is there
    assert tried(kubernetes, chart.rendered(helm, given, kubernetes_namespace)) == ""


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_server_takes_the_manifests(kubernetes: Access, kubernetes_namespace: str, path: Path) -> None:
    places = {"hansa": kubernetes_namespace, "hansa-work": "default", "oscar-svc": "default"}
    objects = list(yaml.safe_load_all(path.read_text()))
    for one in objects:
        if "namespace" in one["metadata"]:
            one["metadata"]["namespace"] = places[one["metadata"]["namespace"]]
    assert tried(kubernetes, objects) == ""
