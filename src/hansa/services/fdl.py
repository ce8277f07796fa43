"""What does an FDL file ask for? YAML text in; one service definition per target cluster out.

Pure: files are read by the caller, who hands in a reader for scripts. The command line calls `parse`; how
single fields become JSON is in `fdl_fields.py`. Files made for oscar-cli and oscar-python work as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from hansa.services import fdl_fields
from hansa.services.fdl_fields import BadFdl

__all__ = ["BadFdl", "Definition", "Fdl", "ReadScript", "parse"]

ReadScript = Callable[[str], str]
_FORM = "functions: {oscar: [{my-cluster: {name: my-service, image: …, script: …}}]}"


@dataclass(frozen=True, slots=True)
class Definition:
    """One service, and the id of the cluster the file wants it in."""

    cluster_id: str
    service: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.service.get("name", ""))

    @property
    def federated(self) -> bool:
        return bool((self.service.get("federation") or {}).get("members"))

    @property
    def has_refresh_token(self) -> bool:
        environment = self.service.get("environment") or {}
        secrets = environment.get("secrets") or environment.get("Secrets") or {}
        return bool(secrets.get("refresh_token"))

    @property
    def undescribed_clusters(self) -> tuple[str, ...]:
        """The clusters of its members that the file itself does not describe."""
        members = (self.service.get("federation") or {}).get("members") or self.service.get("replicas") or []
        named = dict.fromkeys(str(member.get("cluster_id", "")) for member in members)
        return tuple(name for name in named if name not in (self.service.get("clusters") or {}))

    def with_clusters(self, known: Mapping[str, Mapping[str, Any]]) -> "Definition":
        """With each federation member's cluster that the file does not describe itself."""
        clusters = dict(self.service.get("clusters") or {})
        for name in self.undescribed_clusters:
            if name in known:
                clusters[name] = {"auth_user": "", "auth_password": "", **known[name]}
        return replace(self, service={**self.service, "clusters": clusters}) if clusters else self


@dataclass(frozen=True, slots=True)
class Fdl:
    definitions: tuple[Definition, ...]
    warnings: tuple[str, ...] = ()


def parse(text: str, read_script: ReadScript) -> Fdl:
    """Every service of the file, in its order. Raises `BadFdl` with the place and a hint."""
    document = _load(text)
    warnings: list[str] = []
    for name in document:
        if name not in ("functions", "storage_providers", "clusters"):
            known = ("functions", "storage_providers", "clusters")
            warnings.append(f"unknown top-level field {name}{fdl_fields.did_you_mean(str(name), known)}")
    providers = fdl_fields.STORAGE_PROVIDERS(document.get("storage_providers"), "storage_providers", warnings.append)
    clusters = fdl_fields.CLUSTERS(document.get("clusters"), "clusters", warnings.append)
    definitions = []
    for index, (cluster_id, body) in enumerate(_entries(document)):
        where = f"functions.oscar[{index}].{cluster_id}"
        service = fdl_fields.fit(body, where, warnings.append)
        if not service.get("name"):
            raise BadFdl(f"{where} has no name", hint="every service needs a name")
        service["cluster_id"] = cluster_id
        if service.get("script"):
            service["script"] = _script(service["script"], read_script, where)
        _share(service, "storage_providers", providers)
        _share(service, "clusters", clusters)
        definitions.append(Definition(cluster_id, service))
    _refuse_twins(definitions)
    return Fdl(tuple(definitions), tuple(warnings))


def _load(text: str) -> Mapping[str, Any]:
    try:
        document = fdl_fields.load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadFdl(f"not valid YAML: {place}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise BadFdl(f"not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(document, Mapping):
        raise BadFdl("the file holds no FDL", hint=f"its form is {_FORM}")
    return document


def _entries(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """(cluster id, service) of each element of `functions.oscar`."""
    functions = document.get("functions")
    listed = functions.get("oscar") if isinstance(functions, Mapping) else None
    if isinstance(listed, Mapping):  # one service without the dash
        listed = [listed]
    if not isinstance(listed, list) or not listed:
        raise BadFdl("functions.oscar lists no service", hint=f"its form is {_FORM}")
    entries = []
    for index, element in enumerate(listed):
        where = f"functions.oscar[{index}]"
        if not isinstance(element, Mapping) or not element:
            raise BadFdl(f"{where} is not a map of a cluster id to a service", hint=f"the form is {_FORM}")
        for cluster_id, body in element.items():
            if not isinstance(body, Mapping) or fdl_fields.is_empty(body):
                raise BadFdl(
                    f"{where}.{cluster_id} holds no service",
                    hint="indent the service's fields deeper than its cluster id",
                )
            entries.append((str(cluster_id), body))
    return entries


def _script(named: str, read_script: ReadScript, where: str) -> str:
    # A path has no line break, so a text with one is the script itself.
    content = named if "\n" in named else read_script(named)
    if not content.strip():
        raise BadFdl(f"{where}.script: {named} is empty", hint="the script is what a job runs")
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _share(service: dict[str, Any], field: str, common: Mapping[str, Any]) -> None:
    """Adds the file's own providers or clusters to the service's; as in oscar-cli, the file's win."""
    merged = dict(service.get(field) or {})
    for name, value in common.items():
        own = merged.get(name)
        merged[name] = {**own, **value} if isinstance(own, dict) and field == "storage_providers" else value
    if merged:
        service[field] = merged


def _refuse_twins(definitions: list[Definition]) -> None:
    seen: set[tuple[str, str]] = set()
    for definition in definitions:
        key = (definition.cluster_id, definition.name)
        if key in seen:
            raise BadFdl(f"{definition.name} stands twice for {definition.cluster_id}", hint="remove one of the two")
        seen.add(key)
