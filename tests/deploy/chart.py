"""Where is the chart, and what does it make of values?"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from real.kubernetes.helm_client import Helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "hansa"
NAMESPACE = "harbour"


def rendered(helm: Helm, values: Mapping[str, Any], namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """All objects, as they would be sent to a cluster."""
    told = helm.run("template", "hansa", str(CHART), "--namespace", namespace, values=values, check=True)
    return [one for one in yaml.safe_load_all(told.stdout) if one]


def refused(helm: Helm, values: Mapping[str, Any]) -> str:
    """What is said of values that cannot be."""
    told = helm.run("template", "hansa", str(CHART), "--namespace", NAMESPACE, values=values)
    assert not told.ok
    return told.stderr


def only(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    (found,) = [one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"])]
    return found


def kinds(objects: list[dict[str, Any]]) -> set[str]:
    return {one["kind"] for one in objects}


def settings_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """hansa.toml."""
    return tomllib.loads(only(objects, "ConfigMap")["data"]["hansa.toml"])


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (workload,) = [one for one in objects if one["kind"] in ("Deployment", "StatefulSet")]
    pod: dict[str, Any] = workload["spec"]["template"]["spec"]
    return pod
