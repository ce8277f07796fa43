"""Which parts of a definition are secret, and how they are taken out and put back.

Secrets are kept apart, encrypted, under their dotted path. A definition in memory, in the database or in an answer
carries blanks in their place; a blank sent by a client means "as it was".
"""

import json
from collections.abc import Mapping

import msgspec

from hansa.services.service import ClusterRef, Environment, Service

HIDDEN = "hidden"  # what OSCAR shows in place of the cluster's own keys
REFRESH_TOKEN = "refresh_token"  # noqa: S105 - the name of a secret, known to the manager alone
GROUP_KEY = "hansa.group-key"  # shared by the managers of one federation, never by their jobs
REPLICA_KEY = "hansa.replica-key"  # a replica's coordinator shows it; no other cluster knows it
MEMBER_TOKENS = "hansa.member-tokens"  # JSON: what to show to each replica that this one may give jobs to
GIVER_TOKENS = "hansa.giver-tokens"  # JSON: what each replica shows that may give jobs to this one
REPLICA_KEYS = "replica-keys"  # the capability of a manager that knows these
BETWEEN_MANAGERS = frozenset({GROUP_KEY, REPLICA_KEY, MEMBER_TOKENS, GIVER_TOKENS})  # shown to nobody, not even by name
OURS = BETWEEN_MANAGERS | {REFRESH_TOKEN}  # never a variable of a script
_ENVIRONMENT = "environment.secrets."
PROVIDER_SECRETS = frozenset({"access_key", "secret_key", "password", "token", "refresh_token"})


def take_out(service: Service, known: Mapping[str, str] | None = None) -> tuple[Service, dict[str, str]]:
    """The definition with blanks, and its secrets; blanks are filled from `known`, the secrets we already keep."""
    known = known or {}
    secrets: dict[str, str] = {}

    def keep(path: str, value: str) -> None:
        kept = known.get(path, "") if value in ("", HIDDEN) else value
        if kept or path.startswith(_ENVIRONMENT):
            secrets[path] = kept

    for key in sorted(OURS):  # these stay until they are replaced or revoked, also when a client leaves them out
        if kept := known.get(_ENVIRONMENT + key):
            secrets[_ENVIRONMENT + key] = kept
    for key, value in service.environment.secrets.items():
        keep(_ENVIRONMENT + key, value)
    providers: dict[str, dict[str, dict[str, object]]] = {}
    for kind, by_id in service.storage_providers.items():
        for ident, config in by_id.items():
            ours = (kind, ident) == ("minio", "default")
            blanked = dict(config)
            for field in PROVIDER_SECRETS & config.keys():
                if ours and config[field] == HIDDEN:
                    continue
                keep(f"storage_providers.{kind}.{ident}.{field}", str(config[field]))
                blanked[field] = ""
            providers.setdefault(kind, {})[ident] = blanked
    clusters: dict[str, ClusterRef] = {}
    for ident, cluster in service.clusters.items():
        keep(f"clusters.{ident}.auth_password", cluster.auth_password)
        clusters[ident] = msgspec.structs.replace(cluster, auth_password="")
    environment = Environment(
        variables=service.environment.variables,
        secrets={key: "" for key in service.environment.secrets if key not in BETWEEN_MANAGERS},
    )
    public = msgspec.structs.replace(service, environment=environment, storage_providers=providers, clusters=clusters)
    return public, secrets


def tokens_in(secrets: Mapping[str, str], name: str) -> dict[str, str]:
    """Tokens by the key of a member, as a coordinator sent them under this name."""
    try:
        told = json.loads(secrets.get(path_of(name), "") or "{}")
    except ValueError:
        return {}
    found = told.items() if isinstance(told, dict) else ()
    return {str(key): token for key, token in found if isinstance(token, str)}


def path_of(secret: str) -> str:
    """Where a secret of a script, or one of ours beside them, is kept."""
    return _ENVIRONMENT + secret


def has_keys(provider: Mapping[str, object] | None) -> bool:
    """Whether a provider of storage came with keys of its own."""
    return (provider or {}).get("access_key", "") not in ("", HIDDEN)


def for_script(secrets: Mapping[str, str]) -> dict[str, str]:
    """What a script sees as variables: what its owner asked for, never the refresh token."""
    asked = {path.removeprefix(_ENVIRONMENT): text for path, text in secrets.items() if path.startswith(_ENVIRONMENT)}
    return {key: text for key, text in asked.items() if key not in OURS}


def providers_with_keys(service: Service, secrets: Mapping[str, str]) -> dict[str, dict[str, dict[str, object]]]:
    """The storage providers with their keys put back: for the engine, and for the owner who gave them."""
    filled: dict[str, dict[str, dict[str, object]]] = {}
    for kind, by_id in service.storage_providers.items():
        for ident, config in by_id.items():
            path = f"storage_providers.{kind}.{ident}."
            filled.setdefault(kind, {})[ident] = {
                key: secrets.get(path + key, value) if key in PROVIDER_SECRETS else value
                for key, value in config.items()
            }
    return filled
