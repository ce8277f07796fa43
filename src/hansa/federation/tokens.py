"""Who may let clusters in? The admin makes tokens: each good for one cluster, for a short time, shown once."""

from collections.abc import Sequence

from hansa.federation import addressing
from hansa.federation.acting import require_admin
from hansa.federation.errors import BadToken, NoSuchToken
from hansa.federation.join_token import JoinToken
from hansa.federation.ports import Fence, Note, TokenRecord
from hansa.federation.room import Hub
from hansa.identity import Caller, authority
from hansa.kernel import names
from hansa.kernel.errors import Invalid
from hansa.messages.clusters import NewToken, Token

_LONGEST = 7 * 24 * 60  # minutes
_REMEMBERED = 86_400.0  # seconds a token stays in the list after its time, for who wonders what became of it


async def create(hub: Hub, caller: Caller, asked: NewToken) -> Token:
    """The only answer that ever shows it."""
    require_admin(caller)
    if asked.cluster:
        names.cluster(asked.cluster)
    if not 0 < asked.minutes <= _LONGEST:
        raise Invalid(f"a token lives for up to {_LONGEST} minutes", hint="60 is plenty to join a cluster")
    endpoint = addressing.checked(hub, asked.endpoint, asked.cluster) if asked.endpoint else ""
    made = JoinToken.new(fingerprint=authority.fingerprint(hub.trust.active.certificate), trust_domain=hub.trust.domain)
    now = hub.clock.now()
    record = TokenRecord(
        id=made.id,
        digest=made.digest,
        cluster=asked.cluster,
        approve=asked.approve,
        author=caller.uid[:255],
        created=now,
        expires=now + asked.minutes * 60,
        endpoint=endpoint,
    )
    whom = f"cluster {asked.cluster}" if asked.cluster else "any cluster"
    whom += f" at {endpoint}" if endpoint else ""
    await hub.trust.tokens.add(record, Note("", "token", f"token {made.id} for {whom} made, by {caller.name}"))
    return view(record, made.text, hub.settings.reached_at)


async def listed(hub: Hub, caller: Caller) -> Sequence[Token]:
    require_admin(caller)
    return [view(one) for one in await hub.trust.tokens.all()]


async def revoke(hub: Hub, caller: Caller, ident: str) -> None:
    """Nobody can use it any more. Who joined with it stays: that is ended by removing the cluster."""
    require_admin(caller)
    note = Note("", "token", f"token {ident[:32]} revoked, by {caller.name}")
    if not await hub.trust.tokens.revoke(ident[:32], note):
        raise NoSuchToken(f"there is no token {ident[:32]!r}", hint="hansa cluster token ls")


async def forget(hub: Hub, fence: Fence) -> None:
    """Periodic: those whose time has been over for a day."""
    await hub.trust.tokens.forget(hub.clock.now() - _REMEMBERED, fence)


async def shown(hub: Hub, text: str, cluster: str) -> TokenRecord:
    """The token somebody shows to join as `cluster`, used or not. Raises `BadToken`; who does not have the secret
    learns nothing else."""
    given = JoinToken.read(text)
    if given.trust_domain != hub.trust.domain:
        raise BadToken(
            f"the token is of the federation {given.trust_domain!r}, this is {hub.trust.domain!r}",
            hint="check the hub's address",
        )
    found = await hub.trust.tokens.get(given.id)
    if not given.is_the_one(found.digest if found is not None else "") or found is None:
        raise BadToken("the token is not known", hint="make a new one: hansa cluster token create")
    if hub.clock.now() >= found.expires:
        raise BadToken("the token's time is over", hint="make a new one: hansa cluster token create")
    if found.cluster and found.cluster != cluster:
        raise BadToken(
            f"the token is for cluster {found.cluster}, not for {cluster}",
            hint="make one for this cluster: hansa cluster token create",
        )
    return found


def view(record: TokenRecord, text: str = "", hub: str = "") -> Token:
    return Token(
        id=record.id,
        expires=record.expires,
        approve=record.approve,
        cluster=record.cluster,
        used_by=record.used_by,
        used=record.used,
        token=text,
        hub=hub,
        endpoint=record.endpoint,
    )
