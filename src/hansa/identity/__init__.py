"""Who is asking, and what may they do?

`signin` turns an Authorization header into a `Caller`, `uids` tells people of several issuers apart, `throttle` says
how often one may guess, `visits` who may come back to a service's pages, `access` what the caller may see, call and
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
from hansa.identity.throttle import Throttle
from hansa.identity.uids import HOME_MARK, KnownPerson, Uids, choose_home, qualified
from hansa.identity.vault import Vault
from hansa.identity.visits import VISIT_SECONDS, Visits

__all__ = [
    "ADMIN_UID",
    "HOME_MARK",
    "LONGEST_TOKEN",
    "VISIT_SECONDS",
    "Basic",
    "Bearer",
    "Caller",
    "Identity",
    "KnownPerson",
    "SignIn",
    "Throttle",
    "TokenVerifier",
    "Uids",
    "Vault",
    "Visits",
    "access",
    "authority",
    "check_admin",
    "choose_home",
    "claim_namespace",
    "errors",
    "format_uid",
    "groups_in",
    "looks_like_service_token",
    "new_service_token",
    "owner_hash",
    "parse_authorization",
    "qualified",
    "same_secret",
    "service_caller",
    "user_namespace",
]
