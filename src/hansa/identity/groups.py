"""Which groups do a token's claims name? OSCAR's rule by the issuer's address, or a configured claim."""

from collections.abc import Mapping
from typing import Any

_EGI_GROUP = "urn:mace:egi.eu:group"
_MOST = 2000  # far beyond real users, so that a careless issuer cannot fill our memory


def groups_in(claims: Mapping[str, Any], issuer: str, claim: str | None = None) -> frozenset[str] | None:
    """The user's groups; None when the claims do not speak of groups, so that userinfo is worth asking."""
    if claim:
        return _names(_reach(claims, claim))
    if "/realms/egi" in issuer:
        urns = _names(claims.get("entitlements"))
        return None if urns is None else frozenset(filter(None, map(_egi_group, urns)))
    if "/realms/ai4eosc" in issuer:
        return _names(_reach(claims, "realm_access.roles"))
    found = [_names(claims.get(name)) for name in ("group_membership", "groups")]
    told = [names for names in found if names is not None]
    return frozenset().union(*told) if told else None


def _egi_group(urn: str) -> str:
    """`urn:mace:egi.eu:group:vo.example.eu:role=member#aai.egi.eu` is a member of `vo.example.eu`."""
    parts = urn.lower().split(":")
    return parts[4] if urn.lower().startswith(_EGI_GROUP) and len(parts) > 4 else ""


def _reach(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that very name (`https://host/groups` has dots too), else one step inwards per dot."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _names(value: Any) -> frozenset[str] | None:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return None
    return frozenset(item for item in value[:_MOST] if isinstance(item, str) and item)
