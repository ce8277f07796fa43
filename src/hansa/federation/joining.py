"""How does a cluster become a member, stay one, and stop being one by its own will?

A join is two writes: the token is used, the record is written. Whoever holds the key that used a token may ask again
until the token's time is over, so neither a crash between the two nor a lost answer costs the token.
"""

from dataclasses import replace
from typing import NoReturn

from hansa.federation import acting, addressing, describing, goodbyes, policies, syncing, tokens
from hansa.federation.errors import (
    BadToken,
    ChangedMeanwhile,
    ClusterExists,
    GoodbyeInDoubt,
    NotAdmitted,
    NotAMember,
    TooManyCertificates,
    WrongState,
)
from hansa.federation.ports import NOW, ClusterRecord, Note, TokenRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import Caller, authority
from hansa.kernel import names
from hansa.kernel.plain_text import plain
from hansa.messages.members import Join, Joined, Renew

_TRIES = 5
_HOUR = 3600.0
_MOST_SERIALS = 3
_MOST_IN_USE = 8


async def join(hub: Hub, said: Join) -> Joined:
    async with hub.trust.turns:
        cluster = names.cluster(said.cluster)
        token = await tokens.shown(hub, said.token, cluster)
        key = authority.public_key(said.request)
        describing.checked(said.facts)
        mark = authority.key_digest(key)
        await syncing.learn(hub)
        if token.used is None:
            token = await _use(hub, token, said, mark)
        if (token.used_by, token.used_key) != (cluster, mark):
            raise BadToken("the token was used already", hint="make a new one: hansa cluster token create")
        issued = _sign(hub, cluster, key, token.life)
        return _answer(hub, await _enter(hub, token, said, issued), issued)


async def _use(hub: Hub, token: TokenRecord, said: Join, mark: str) -> TokenRecord:
    """The token after one tried to use it: by us, or by whoever was faster."""
    _may_enter(hub, token, said)
    life = await hub.clusters.lives(said.cluster) + 1
    await hub.trust.tokens.use(token.id, cluster=said.cluster, key=mark, life=life)
    now = await hub.trust.tokens.get(token.id)
    if now is None or now.used is None:
        raise BadToken("the token has just been revoked or expired", hint="make a new one: hansa cluster token create")
    return now


def _may_enter(hub: Hub, token: TokenRecord, said: Join) -> None:
    former = hub.registry.get(said.cluster)
    if former is not None and former.record.kind == "oscar":
        raise ClusterExists(
            f"{said.cluster} is registered as an OSCAR cluster",
            hint=f"remove that first: hansa cluster remove {said.cluster}",
        )
    if former is not None and former.record.state != "left" and token.cluster != said.cluster:
        raise ClusterExists(
            f"there is a cluster {said.cluster} in this federation already",
            hint=f"give this one another cluster.id, or let it take that place with a token made for it: "
            f"hansa cluster token create --cluster {said.cluster}",
        )
    verdict = policies.admit(hub, said.cluster, said.facts, token.approve)
    if verdict.kind == "refuse":
        raise NotAdmitted(f"cluster {said.cluster} is not let in: {verdict.reason}", hint="ask the federation's admin")


async def _enter(hub: Hub, token: TokenRecord, said: Join, issued: authority.Issued) -> Known:
    for _ in range(_TRIES):
        former = hub.registry.get(said.cluster)
        record = former.record if former is not None else None
        if record is not None and record.incarnation == token.life:
            # The same join again: its answer got lost, or it came twice.
            new = replace(
                record, serials=(*record.serials, issued.serial)[-_MOST_SERIALS:], certificate_until=issued.until
            )
            notes: tuple[Note, ...] = ()
        else:
            if await hub.clusters.lives(said.cluster) >= token.life:
                await syncing.learn(hub)
                known = hub.registry.get(said.cluster)
                if known is not None and known.record.incarnation == token.life:
                    continue  # the same key has just come in, by another call
                raise BadToken(
                    f"cluster {said.cluster} was removed, or has joined again, since this token was used",
                    hint="make a new one: hansa cluster token create",
                )
            new = _member(hub, token, said, issued, record)
            by = f"with token {token.id} of {token.author}"
            how = "joined" if new.state == "ready" else "asks to join"
            notes = (Note(said.cluster, "joined", f"{how} {by}"),)
        written = await hub.clusters.put(new, *notes)
        if written is not None:
            return _taken_in(hub, written)
        await syncing.learn(hub)
    raise ChangedMeanwhile(f"cluster {said.cluster} is being changed by others", hint="try again")


def _member(
    hub: Hub, token: TokenRecord, said: Join, issued: authority.Issued, former: ClusterRecord | None
) -> ClusterRecord:
    now = hub.clock.now()
    verdict = policies.admit(hub, said.cluster, said.facts, token.approve)
    approved = verdict.kind == "approve"
    # What an admin said of it stays true of the place; that it was to leave ended with its leaving.
    cordoned = former is not None and former.wanted == "member" and former.state != "left" and former.cordoned
    endpoint, verify = addressing.at_join(hub, token, said, former)
    return ClusterRecord(
        id=said.cluster,
        kind="hansa",
        state="ready" if approved else "pending",
        since=now,
        reason=f"it has just joined, {verdict.reason}"
        if approved
        else f"waits to be approved{f', at {endpoint}' if endpoint else ''}: hansa cluster approve {said.cluster}",
        incarnation=token.life,
        joined=now,
        told=said.facts,
        overrides=former.overrides if former is not None else {},
        cordoned=cordoned,
        serials=(issued.serial,),
        certificate_until=issued.until,
        endpoint=endpoint,
        verify=verify,
        refused=former.refused if former is not None else "",
        desired=NOW,
        version=former.version if former is not None else 0,
    )


async def approve(hub: Hub, caller: Caller, cluster: str) -> Known:
    """Lets one in that waits for it."""
    acting.require_admin(caller)

    def decide(record: ClusterRecord) -> tuple[ClusterRecord, str, str]:
        if record.state == "left":
            raise WrongState(f"cluster {cluster} has left", hint="join it again with a new token")
        if record.state != "pending":
            return record, "", ""
        reason = f"approved by {caller.name}"
        return replace(record, state="ready", since=hub.clock.now(), reason=reason, desired=NOW), "approved", reason

    return await acting.change(hub, cluster, decide)


async def renew(hub: Hub, shown: authority.Presented, said: Renew) -> Joined:
    """A new certificate for who has one. The one that was shown stays good, for the answer may get lost.

    Another hub process may have told the cluster to renew because another root signs now, and this one may not have
    heard of it yet. So the roots are read after the write: whatever changes later, the cluster is told later."""
    key = authority.public_key(said.request)
    for _ in range(_TRIES):
        signer = hub.trust.active.id
        issued = _sign(hub, shown.cluster, key, shown.life)
        known = await _also_shows(hub, shown, issued)
        await hub.trust.learn()
        if hub.trust.active.id == signer:
            return _answer(hub, known, issued)
    raise ChangedMeanwhile("the hub's roots of trust are being changed", hint="try again")


async def _also_shows(hub: Hub, shown: authority.Presented, issued: authority.Issued) -> Known:
    def decide(record: ClusterRecord) -> tuple[ClusterRecord, str, str]:
        if shown.serial not in record.serials:
            raise NotAMember(
                f"this certificate of cluster {shown.cluster} is not in use any more",
                hint="join again with a new token: hansa cluster join",
            )
        known = hub.registry.get(shown.cluster)
        in_use = known.certificates(hub.clock.now()) if known is not None else frozenset()
        serials = kept(record.serials, shown.serial, issued.serial, in_use)
        if len(serials) > _MOST_IN_USE:
            raise TooManyCertificates(
                f"{len(serials) - 1} certificates of cluster {shown.cluster} are in use: its key was copied",
                hint="join it again with a token made for it: hansa cluster token create --cluster, hansa cluster join",
            )
        return replace(record, serials=serials, certificate_until=issued.until), "", ""

    return await acting.change(hub, shown.cluster, decide)


def kept(serials: tuple[str, ...], shown: str, new: str, in_use: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The certificates a cluster may show after a renewal: the one it showed, whatever became of the answers, and the
    two newest. Those before the one it showed it has no use for; if one is in use all the same, two have its key, and
    whoever renews must not shut the other out."""
    later = serials[serials.index(shown) + 1 :]
    its = (shown, *(*later, new)[-(_MOST_SERIALS - 1) :])
    return (*(one for one in serials if one in in_use and one not in its), *its)


async def leave(hub: Hub, cluster: str, run: str = "") -> None:
    """By its own word: its certificates end here. `run` is the mark of the program that says so."""
    known = acting.get(hub, cluster)
    if known.record.state != "left" and not goodbyes.is_its_own(known, plain(run), hub.clock.now(), hub.limits().every):
        await _doubt(hub, known)

    def decide(record: ClusterRecord) -> tuple[ClusterRecord, str, str]:
        if record.state == "left":
            return record, "", ""
        new = replace(
            record,
            state="left",
            since=hub.clock.now(),
            reason="it left",
            cordoned=False,
            wanted="member",
            serials=(),
            certificate_until=None,
            desired=NOW,
        )
        return new, "left", "left the federation"

    await acting.change(hub, cluster, decide)


async def _doubt(hub: Hub, known: Known) -> NoReturn:
    """Once in a while the history tells of it: an honest one tries again and again."""
    hint = (
        "tried again by itself, and accepted after 10 minutes in which nobody else reports for the cluster; to let it "
        f"go now, at the hub: hansa cluster leave {known.id}"
    )
    now = hub.clock.now()
    if not 0 <= now - known.doubted < _HOUR:
        known.doubted = now
        words = "a request to leave in its name may come from a copy of its key. To let the cluster go"
        await hub.clusters.note(Note(known.id, "goodbye", f"{words}: hansa cluster leave {known.id}"))
    raise GoodbyeInDoubt(f"the request to leave in the name of {known.id} may come from a copy of its key", hint=hint)


def _sign(hub: Hub, cluster: str, key: authority.PublicKey, life: int) -> authority.Issued:
    return authority.sign_cluster(
        hub.trust.active,
        key,
        trust_domain=hub.trust.domain,
        cluster=cluster,
        life=life,
        now=hub.clock.now(),
        seconds=hub.settings.certificate_hours * _HOUR,
    )


def _taken_in(hub: Hub, record: ClusterRecord) -> Known:
    hub.removed.discard(record.id)
    hub.registry.put(record)
    hub.directory.learn(record)
    hub.waking.wake(record.id)
    return acting.get(hub, record.id)


def _answer(hub: Hub, known: Known, issued: authority.Issued) -> Joined:
    return Joined(
        cluster=known.id,
        incarnation=known.record.incarnation,
        state=known.record.state,
        certificate=issued.chain,
        roots=hub.trust.roots,
        trust_domain=hub.trust.domain,
        heartbeat_every=hub.limits().pace,
    )
