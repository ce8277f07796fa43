"""May who shows this certificate be served now? Asked for every request, also on a connection that was there before.

TLS has seen to it that a trusted root signed the certificate and that its owner is calling. Its time, its serial and
its root are looked at here, by the hub's own clock and its newest knowledge.
"""

from dataclasses import replace

from hansa.federation import acting, heartbeats, syncing
from hansa.federation.errors import CertificateExpired, NotAMember
from hansa.federation.ports import ClusterRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import authority
from hansa.kernel import clock

_IN_STEP = 60.0  # a write that takes longer than this to be seen has failed long ago
_DAY = 86_400.0


async def member(hub: Hub, shown: authority.Presented, *, late: bool = False) -> Known:
    """The member it belongs to. `late` also serves one whose time is over, as long as the settings let it return."""
    if shown.trust_domain != hub.trust.domain:
        raise NotAMember(
            f"the certificate is of the federation {shown.trust_domain!r}, this is {hub.trust.domain!r}",
            hint="check the hub's address",
        )
    if not _current(hub, shown) and _may_be_newer_than_we_know(hub, shown):
        async with hub.trust.looking:
            if not _current(hub, shown):
                await syncing.learn(hub)
    if not _current(hub, shown) and _of_a_time_that_was_lost(hub, shown):
        await _remember(hub, shown)
    if not hub.trust.knows(shown.serial):
        raise NotAMember(
            f"the root that signed this certificate of cluster {shown.cluster} is not trusted any more",
            hint="join again with a new token: hansa cluster join",
        )
    known = heartbeats.member(hub, shown.cluster, shown.serial)
    _check_time(hub, shown, late=late)
    return known


def member_at_once(hub: Hub, shown: authority.Presented) -> Known | None:
    """The same, where it is a member beyond doubt; whatever else there is to say takes `member`."""
    if shown.trust_domain != hub.trust.domain or hub.clock.now() >= shown.until or not _current(hub, shown):
        return None
    return hub.registry.get(shown.cluster)


def _current(hub: Hub, shown: authority.Presented) -> bool:
    known = hub.registry.get(shown.cluster)
    return hub.trust.knows(shown.serial) and known is not None and shown.serial in known.record.serials


def _may_be_newer_than_we_know(hub: Hub, shown: authority.Presented) -> bool:
    """Another hub process may have signed it a moment ago. An old one is not worth a look: whoever was removed and
    goes on calling must cost nothing."""
    learned = hub.registry.learned
    return learned is None or learned < shown.since + authority.CLOCKS_DIFFER + _IN_STEP


def _of_a_time_that_was_lost(hub: Hub, shown: authority.Presented) -> bool:
    """Whether it is newer than all we remember of this very life of the cluster. What a hub signs it has written down
    before: so this one was signed after the backup that this hub was restored from."""
    known = hub.registry.get(shown.cluster)
    if known is None or not known.record.serials or not hub.trust.knows(shown.serial):
        return False
    newest = known.record.certificate_until
    return shown.life == known.record.incarnation and newest is not None and shown.until > newest


async def _remember(hub: Hub, shown: authority.Presented) -> None:
    def decide(record: ClusterRecord) -> tuple[ClusterRecord, str, str]:
        if shown.serial in record.serials or shown.life != record.incarnation or not record.serials:
            return record, "", ""
        serials = (record.serials[-1], shown.serial)
        told = "shows a certificate that was signed after the backup this hub was restored from"
        return replace(record, serials=serials, certificate_until=shown.until), "certificate", told

    await acting.change(hub, shown.cluster, decide)


def _check_time(hub: Hub, shown: authority.Presented, *, late: bool) -> None:
    now, until = hub.clock.now(), shown.until
    if now < until or (late and now < until + hub.settings.return_days * _DAY):
        return
    raise CertificateExpired(
        f"the certificate of cluster {shown.cluster} expired at {clock.rfc3339(until)}",
        hint="join again with a new token: hansa cluster join"
        if late
        else "renew it; a manager does so by itself, or join again with a new token",
        expired=until,
    )
