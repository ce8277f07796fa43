"""Who is asking, and what may they do?

`signin` turns an Authorization header into a `Caller`, `access` says what the caller may see, call and
change, `namespaces` where a user's work lives, `vault` how secrets are kept, `authority` how the hub and its members
vouch for each other. Tokens are verified through the port `TokenVerifier`, which `drivers/oidc` fulfils.
"""

from hansa.identity import access, authority, errors
from hansa.identity.caller import ADMIN_UID, Caller
from hansa.identity.groups import groups_in
from hansa.identity.namespaces import claim_namespace, format_uid, owner_hash, user_namespace
from hansa.identity.ports import Identity, TokenVerifier
from hansa.identity.service_token import (
    looks_like_service_token,
    new_service_token,
    same_secret,
    service_caller,
)
from hansa.identity.signin import LONGEST_TOKEN, Basic, Bearer, SignIn, check_admin, parse_authorization
from hansa.identity.vault import Vault

__all__ = [
    "ADMIN_UID",
    "LONGEST_TOKEN",
    "Basic",
    "Bearer",
    "Caller",
    "Identity",
    "SignIn",
    "TokenVerifier",
    "Vault",
    "access",
    "authority",
    "check_admin",
    "claim_namespace",
    "errors",
    "format_uid",
    "groups_in",
    "looks_like_service_token",
    "new_service_token",
    "owner_hash",
    "parse_authorization",
    "same_secret",
    "service_caller",
    "user_namespace",
]
