"""From one definition to a worker for every member: star, tree and mesh. Pure.

The coordinator keeps all members. A star's workers have none. A mesh's workers list everybody else. In a tree a
worker lists its own children, found by `parent`. Workers are marked by annotations, so nothing expands twice.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from hansa.services.errors import BadService
from hansa.services.former_secrets import OPERATION
from hansa.services.replicas.keys import MemberKeys
from hansa.services.secret_parts import (
    BETWEEN_MANAGERS,
    GIVER_TOKENS,
    GROUP_KEY,
    MEMBER_TOKENS,
    REFRESH_TOKEN,
    REPLICA_KEY,
    providers_with_keys,
)
from hansa.services.service import (
    FEDERATION_WORKER,
    ORIGIN_CLUSTER,
    ORIGIN_SERVICE,
    ClusterRef,
    Environment,
    Federation,
    Member,
    Service,
    StorageIO,
    provider_of,
    split_path,
)

DEFINITION = "hansa/definition"  # annotation: fingerprint of the coordinator's definition it was made from
_ENVIRONMENT = "environment.secrets."


@dataclass(frozen=True, slots=True)
class Worker:
    """What one member should run."""

    member: Member
    definition: Service  # with the secrets it needs, for sending


def oscar_members(federation: Federation | None) -> tuple[Member, ...]:
    """The members that are services of other clusters; `endpoint` members are only called."""
    return tuple(m for m in (federation.members if federation else ()) if m.type.lower() == "oscar")


def check(service: Service) -> None:
    """Members are distinct, parents exist and form no ring, and every cluster has a name."""
    federation = service.federation
    if federation is None or not federation.members:
        return
    if not service.cluster_id:
        raise BadService("a federated service needs its cluster_id", hint="set cluster_id to this cluster's own id")
    keys = [member.key for member in federation.members]
    doubled = {key for key in keys if keys.count(key) > 1}
    if doubled:
        raise BadService("members named twice: " + ", ".join(sorted(doubled)))
    if f"{service.cluster_id}/{service.name}" in keys:
        raise BadService("the coordinator cannot be its own member", hint="give the member another service_name")
    by_name = _by_name(federation)
    for member in federation.members:
        seen = {member.key}
        parent = _parent(member)
        if parent and federation.topology != "tree":
            raise BadService("parent is for topology tree only", hint="set topology: tree or drop parent")
        while parent:
            found = by_name.get(parent)
            if found is None:
                raise BadService(f"member {member.key} names a parent {parent!r} that is no member")
            if found.key in seen:
                raise BadService(f"the parents of member {member.key} form a ring")
            seen.add(found.key)
            parent = _parent(found)


def children(federation: Federation, of: Member | None) -> tuple[Member, ...]:
    """The members directly below one (None: below the coordinator)."""
    if federation.topology != "tree":
        return federation.members if of is None else ()
    wanted = of.key if of is not None else ""
    by_name = _by_name(federation)
    return tuple(m for m in federation.members if (by_name[_parent(m)].key if _parent(m) else "") == wanted)


def own_targets(service: Service) -> tuple[Member, ...]:
    """To whom this very service may delegate: a coordinator of a tree only to the members right below it."""
    if service.federation is None or service.federation.topology == "none":
        return ()
    return service.federation.members if service.is_worker else children(service.federation, None)


def expand(
    service: Service,
    secrets: Mapping[str, str],
    *,
    keys: MemberKeys,
    keyless: Collection[str] = (),
    operation: str,
    fingerprint: str,
    own_endpoint: str,
) -> list[Worker]:
    """A worker for every oscar member. `service` is the kept definition, `secrets` its secrets by dotted path; who is
    `keyless` takes no keys of its own, and has to be shown a person's token. Each definition holds what its member may
    be sent, and nothing is added or left out later."""
    check(service)
    return [
        Worker(member, _worker(service, secrets, keys, keyless, member, operation, fingerprint, own_endpoint))
        for member in oscar_members(service.federation)
    ]


def key_of(service: Service) -> str:
    """How a coordinator is named as a member of its own mesh."""
    return _itself(service).key


def _worker(
    origin: Service,
    secrets: Mapping[str, str],
    keys: MemberKeys,
    keyless: Collection[str],
    member: Member,
    operation: str,
    fingerprint: str,
    own_endpoint: str,
) -> Service:
    federation = origin.federation
    assert federation is not None
    members = _members_of(origin, federation, member)
    own = {path.removeprefix(_ENVIRONMENT): text for path, text in secrets.items() if path.startswith(_ENVIRONMENT)}
    clusters = {
        ident: msgspec.structs.replace(cluster, auth_user="", auth_password="")
        for ident, cluster in origin.clusters.items()
    }
    if not clusters.get(origin.cluster_id, ClusterRef()).endpoint:
        clusters[origin.cluster_id] = ClusterRef(endpoint=own_endpoint, ssl_verify=True)
    return msgspec.structs.replace(
        origin,
        name=member.service_name,
        cluster_id=member.cluster_id,
        federation=msgspec.structs.replace(federation, members=members),
        clusters=clusters,
        annotations={
            **origin.annotations,
            ORIGIN_CLUSTER: origin.cluster_id,
            ORIGIN_SERVICE: origin.name,
            FEDERATION_WORKER: "true",
            OPERATION: operation,
            DEFINITION: fingerprint,
        },
        environment=Environment(
            variables=origin.environment.variables,
            secrets=_for_keyless(own, federation)
            if member.key in keyless
            else {
                **_for_hansa(own),
                REPLICA_KEY: keys.key(origin, member.key),
                **_tokens(origin, keys, federation, member, members),
            },
        ),
        token=keys.token(origin, member.key),
        storage_providers=providers_with_keys(origin, secrets),
        input=tuple(_bare(io, origin.name) for io in origin.input),
        bucket_list=(),
        namespace="",
        owner="",
        labels={},
        vo="",
        volume=origin.volume if origin.volume and origin.volume.size else None,
    )


def _members_of(origin: Service, federation: Federation, member: Member) -> tuple[Member, ...]:
    if federation.topology == "mesh":
        return (_itself(origin), *(other for other in federation.members if other.key != member.key))
    if federation.topology == "tree":
        return tuple(msgspec.structs.replace(child, parent=msgspec.UNSET) for child in children(federation, member))
    return ()


def _itself(origin: Service) -> Member:
    return Member(type="oscar", cluster_id=origin.cluster_id, service_name=origin.name)


def _tokens(
    origin: Service, keys: MemberKeys, federation: Federation, member: Member, targets: tuple[Member, ...]
) -> dict[str, str]:
    """A worker that gives jobs to others, or gets some from others than its coordinator, needs tokens for that; each is
    good between these two alone."""
    to = {one.key: keys.token(origin, one.key, member.key) for one in targets if one.type.lower() == "oscar"}
    others = [one for one in oscar_members(federation) if one.key != member.key]
    givers = [one for one in others if any(target.key == member.key for target in _members_of(origin, federation, one))]
    of = {one.key: keys.token(origin, member.key, one.key) for one in givers}
    named = {MEMBER_TOKENS: to, GIVER_TOKENS: of}  # also if there are none: what is not sent stays as it was
    return {name: json.dumps(tokens, sort_keys=True) for name, tokens in named.items()}


def _for_hansa(own: Mapping[str, str]) -> dict[str, str]:
    """The user's own secrets, for their service needs them. Nothing that a token of its owner could be had with: only
    the coordinator gives jobs to a member that has to be shown one."""
    return {name: text for name, text in own.items() if name not in (REFRESH_TOKEN, GROUP_KEY)}


def without_jobs(service: Service, keyless: Collection[str]) -> tuple[Member, ...]:
    """Members that nobody gives jobs to: in a tree, those that have to be shown a token and are below another one."""
    if service.federation is None or service.federation.topology != "tree":
        return ()
    near = {member.key for member in children(service.federation, None)}
    return tuple(m for m in oscar_members(service.federation) if m.key in keyless and m.key not in near)


def _for_keyless(own: Mapping[str, str], federation: Federation) -> dict[str, str]:
    """OSCAR's own manager hands all secrets of a service to its jobs, so it gets none of those between managers; and it
    writes a blank over the secret it keeps."""
    unwanted = BETWEEN_MANAGERS if federation.topology == "mesh" else BETWEEN_MANAGERS | {REFRESH_TOKEN}
    return {name: text for name, text in own.items() if text and name not in unwanted}


def _bare(io: StorageIO, origin: str) -> StorageIO:
    """A path in the origin's own bucket was meant relative: each worker has its own."""
    bucket, folder = split_path(io.path)
    if provider_of(io)[0] == "minio" and bucket == origin and folder and "/" not in folder:
        return msgspec.structs.replace(io, path=folder)
    return io


def _parent(member: Member) -> str:
    return "" if member.parent is msgspec.UNSET else member.parent


def _by_name(federation: Federation) -> dict[str, Member]:
    """A parent is named by its key, or by its cluster alone where that is clear."""
    names = {member.key: member for member in federation.members}
    for member in federation.members:
        if sum(other.cluster_id == member.cluster_id for other in federation.members) == 1:
            names.setdefault(member.cluster_id, member)
    return names
