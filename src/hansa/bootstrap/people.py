"""Who is who at this manager or hub: the home issuer is settled once for all, and people on record keep their uids."""

from collections import Counter
from collections.abc import Sequence

import structlog

from hansa import identity
from hansa.kernel.issuer import IssuerSettings
from hansa.settings import Settings
from hansa.storage import PersonRecord
from hansa.store import Database, Facts, PeopleStore

_log = structlog.get_logger("hansa")
_HOME = "home_issuer"


async def uids(given: Settings, database: Database) -> identity.Uids:
    """Raises `HomeContradicted` where the settings say something else than the database remembers."""
    trusted, facts, people = given.oidc.issuers, Facts(database), PeopleStore(database)
    for issuer in trusted:
        for former in issuer.formerly:
            await people.move(former, issuer.url)
    recorded = await facts.get(_HOME) or ""
    moved = _where_now(recorded, trusted)
    if moved != recorded:
        await facts.set(_HOME, moved)
    home = identity.choose_home(moved, given.oidc.home, [issuer.url for issuer in trusted])
    if home and not moved:
        home = await facts.settle(_HOME, home)
    known = await people.all()
    _tell_of_strangers(known, {given.oidc.home, *(issuer.url for issuer in trusted)})
    return identity.Uids(home, (identity.KnownPerson(one.issuer, one.subject, one.uid) for one in known))


def _where_now(issuer: str, trusted: tuple[IssuerSettings, ...]) -> str:
    return next((one.url for one in trusted if issuer in one.formerly), issuer)


def _tell_of_strangers(known: Sequence[PersonRecord], named: set[str]) -> None:
    """An issuer that moved without a word looks like this, and its people would come back as others."""
    if not named - {""}:
        return
    for issuer, people in sorted(Counter(one.issuer for one in known if one.issuer not in named).items()):
        _log.warning(
            "people on record cannot sign in: their issuer is not trusted",
            issuer=issuer,
            people=people,
            hint="if it has another address now, name this one in its `formerly`, before they sign in",
        )
