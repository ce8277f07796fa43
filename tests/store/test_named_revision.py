"""A database of the version that kept jobs of members under their own names: what goes on goes on, under another."""

import json

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services.delegation import lending
from hansa.services.delegation.ledger import adopted_name
from hansa.store import Database, DelegationStore, make_engine, schema

_ADD = sa.text("""
    insert into delegations
        (job, epoch, phase, cluster_id, service, endpoint, permit, publisher, decision, heard, given)
    values (:job, 1, :phase, 'visby', 'gray-v', 'https://v', :permit, -1, :decision, 5, 4)""")
_THEIRS = {"adopted": True, "service": "gray"}


async def test_what_was_lent_to_members_goes_on(database_url: str) -> None:
    vault, engine = Vault([Vault.new_key()]), make_engine(database_url)
    schema.upgrade(engine, "0008")
    rows = {
        "ours": ("away", {"service": "gray"}),
        "lent": ("away", _THEIRS),
        "on-x": ("away", _THEIRS | {"of": "ours"}),
        "over": ("done", _THEIRS),
    }
    with engine.begin() as connection:
        for job, (phase, decision) in rows.items():
            permit = vault.seal({"permit": f"of {job}"}, purpose=job)
            told = {"job": job, "phase": phase, "permit": permit, "decision": json.dumps(decision)}
            connection.execute(_ADD, told)
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        store = DelegationStore(database, vault)
        kept = {one.permit: one for one in await store.active()}
        assert kept.keys() == {"of ours", "of lent", "of on-x"}
        lent, onward, ours = kept["of lent"], kept["of on-x"], kept["of ours"]
        assert (ours.job, ours.adopted, ours.known_as) == ("ours", False, "ours")
        assert (lent.job, lent.adopted, lent.known_as) == (
            adopted_name("gray", "visby", "gray-v", "lent"),
            True,
            "lent",
        )
        assert (onward.adopted, onward.known_as) == (True, "ours")
        assert [lending.of(one) for one in (ours, lent, onward)] == ["away ours 1", "away lent 1", "away on-x 1"]
        assert await store.named("lent") == [lent]
        assert await store.get("lent") is await store.get("over") is None
        assert await store.finished(lent.job, 1, 6.0)
        assert await store.get(lent.job) is None
    finally:
        await database.close()
