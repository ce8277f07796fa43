"""A federation drawn as people sketch it: the coordinator, its members below, what is wrong beside each. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from hansa.entrypoints.cli.screen import plain


def draw(
    service: str, topology: str, members: Sequence[Mapping[str, Any]], state: Mapping[str, Mapping[str, Any]]
) -> str:
    """One line for each member; children of a tree stand below their parent."""
    words = {"mesh": " (mesh: everybody hands jobs to everybody)", "none": " (delegation is off)"}
    lines = [f"{service}{words.get(topology, '')}"]
    below: dict[str, list[Mapping[str, Any]]] = {}
    for member in members:
        below.setdefault(_parent(member, members), []).append(member)
    drawn: set[str] = set()
    _branch(below, "", "", lines, state, drawn)
    if lost := [member for member in members if key(member) not in drawn]:  # in a ring: below nobody
        _branch({"": lost}, "", "", lines, state, drawn)
    return "\n".join(plain(line) for line in lines)


def key(member: Mapping[str, Any]) -> str:
    if str(member.get("type", "")).lower() == "endpoint":
        return str(member.get("url", ""))
    return f"{member.get('cluster_id', '')}/{member.get('service_name', '')}"


def _parent(member: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> str:
    """A parent may be named by its cluster alone."""
    named = str(member.get("parent") or "")
    for other in members:
        if named and named in (key(other), other.get("cluster_id")):
            return key(other)
    return ""


def _branch(
    below: Mapping[str, list[Mapping[str, Any]]],
    parent: str,
    indent: str,
    lines: list[str],
    state: Mapping[str, Mapping[str, Any]],
    drawn: set[str],
) -> None:
    here = {key(member): member for member in below.get(parent, []) if key(member) not in drawn}
    drawn.update(here)  # a ring somebody stored elsewhere must not draw for ever
    for index, (name, member) in enumerate(here.items()):
        last = index == len(here) - 1
        lines.append(f"{indent}{'└─' if last else '├─'} {name}{_beside(member, state.get(name))}")
        _branch(below, name, indent + ("   " if last else "│  "), lines, state, drawn)


def _beside(member: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
    words = [f"priority {member['priority']}"] if member.get("priority") else []
    if found is not None:
        if not found.get("reachable"):
            words.append("not reachable" + (f", last seen {found['last_seen']}" if found.get("last_seen") else ""))
        elif not found.get("in_sync"):
            words.append("out of sync")
        else:
            words.append("in sync")
        if found.get("way") == "token":
            words.append("gets its owner's access token")
        if found.get("trouble"):
            words.append(str(found["trouble"]))
    return f"  ({'; '.join(words)})" if words else ""
