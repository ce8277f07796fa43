"""A database of the version that knew people by subject alone: everybody on record keeps their uid and their things."""

import json

import pytest
import sqlalchemy as sa
import structlog

from hansa import identity
from hansa.bootstrap.people import uids
from hansa.identity import qualified
from hansa.identity.errors import AnotherPerson, HomeContradicted
from hansa.settings import Settings
from hansa.store import Database, Facts, PeopleStore, make_engine, schema

A, B, C = "https://a.test/realms/x", "https://b.test/realms/x", "https://c.test"

_ADD = (
    "insert into users (uid, name, issuer, namespace, store_secret, created, subject)"
    " values ('{uid}', 'N', '{issuer}', '{namespace}', '', 1, '{subject}')"
)


def old(url: str, *people: tuple[str, str, float]) -> sa.Engine:
    """As the revision before left it: uid and issuer, nothing about subjects."""
    engine = make_engine(url)
    schema.upgrade(engine, "0003")
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        for number, (uid, issuer, created) in enumerate(people):
            row = {"uid": uid, "issuer": issuer, "namespace": f"ns-{number}", "secret": b"sealed", "created": created}
            connection.execute(
                sa.text(
                    "insert into users (uid, name, issuer, namespace, store_secret, created)"
                    " values (:uid, 'N', :issuer, :namespace, :secret, :created)"
                ),
                row,
            )
        connection.execute(sa.text("insert into quotas (uid, limits) values ('alice', '{\"cpu\": 3}')"))
        connection.execute(sa.text("insert into facts (name, value) values ('other', '1')"))
    return engine


def trusting(*issuers: str, home: str = "", **formerly: list[str]) -> Settings:
    listed = [{"url": one, "audience": "*", "formerly": formerly.get(one[8], [])} for one in issuers]
    return Settings.model_validate({"oidc": {"issuers": listed, "home": home}})


async def opened(engine: sa.Engine, given: Settings) -> identity.Uids:
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        return await uids(given, database)
    finally:
        await database.close()


async def test_one_issuer_on_record_is_the_home(database_url: str) -> None:
    engine = old(database_url, ("alice", A, 1.0), ("bob", A, 2.0))
    found = await opened(engine, trusting(B, A))  # not the first in the settings
    assert found.home == A
    assert [found.of(A, "alice"), found.of(A, "bob"), found.of(A, "new")] == ["alice", "bob", "new"]
    assert found.of(B, "alice") == qualified(B, "alice")


async def test_records_of_several_issuers_stay_whose_they_are(database_url: str) -> None:
    engine = old(database_url, ("carol", B, 1.0), ("alice", A, 2.0), ("bob", A, 3.0))
    found = await opened(engine, trusting(A, B))
    assert found.home == A  # of more people
    assert found.of(B, "carol") == "carol"
    assert found.of(A, "carol") == qualified(A, "carol")
    assert found.of(B, "alice") == qualified(B, "alice")
    assert found.of(B, "new") == qualified(B, "new")


async def test_among_equals_the_one_that_was_here_first(database_url: str) -> None:
    engine = old(database_url, ("alice", A, 2.0), ("carol", B, 1.0))
    assert (await opened(engine, trusting(A, B))).home == B


async def test_an_empty_database_takes_the_first_of_the_settings_and_keeps_it(database_url: str) -> None:
    engine = old(database_url)
    assert (await opened(engine, trusting())).home == ""  # nobody can come yet: nothing is settled
    engine = make_engine(database_url)
    assert (await opened(engine, trusting(B, A))).home == B
    engine = make_engine(database_url)
    assert (await opened(engine, trusting(A, B))).home == B
    engine = make_engine(database_url)
    with pytest.raises(HomeContradicted):
        await opened(engine, trusting(A, B, home=A))


async def test_the_settings_can_say_which_from_the_beginning(database_url: str) -> None:
    engine = old(database_url)
    assert (await opened(engine, trusting(A, B, home=f"{B}/"))).home == B


def test_nothing_else_changes(database_url: str) -> None:
    engine = old(database_url, ("alice", A, 1.0))
    schema.upgrade(engine)
    with engine.connect() as connection:
        quotas, facts, people = (
            connection.execute(sa.text(f"select {columns}")).all()
            for columns in (
                "uid, limits from quotas",
                "name, value from facts order by name",
                "uid, subject, namespace from users",
            )
        )
    assert quotas == [("alice", '{"cpu": 3}')]
    assert facts == [("home_issuer", json.dumps(A)), ("other", "1")]
    assert people == [("alice", "alice", "ns-0")]
    taken = sa.text(_ADD.format(uid="x", issuer="i", namespace="ns-0", subject="x"))
    with engine.connect() as connection, pytest.raises(sa.exc.IntegrityError):  # a namespace is still one user's
        connection.execute(taken)
    engine.dispose()


async def test_a_home_that_moved(database_url: str) -> None:
    engine = old(database_url, ("alice", A, 1.0), ("bob", C, 2.0))
    with pytest.raises(HomeContradicted):
        await opened(engine, trusting(B))
    moved = trusting(B, b=[f"{A}/"])
    found = await opened(make_engine(database_url), moved)
    assert found.home == B
    assert [found.of(B, "alice"), found.of(B, "new")] == ["alice", "new"]
    again = await opened(make_engine(database_url), trusting(B))  # it is on record: the hint may go
    assert [again.home, again.of(B, "alice"), again.of(C, "bob")] == [B, "alice", "bob"]


async def test_people_whose_issuer_is_not_trusted_are_told_of(database_url: str) -> None:
    """It may have moved: then its people are to be named before they come back as others."""
    with structlog.testing.capture_logs() as told:
        await opened(old(database_url, ("alice", A, 1.0), ("bob", A, 2.0), ("carol", C, 3.0)), trusting(A, B))
    assert [(one["log_level"], one["issuer"], one["people"]) for one in told] == [("warning", C, 1)]
    with structlog.testing.capture_logs() as told:
        found = await opened(make_engine(database_url), trusting(A, B, b=[C]))
        await opened(make_engine(database_url), trusting())
    assert told == []
    assert found.of(B, "carol") == "carol"


async def test_two_people_do_not_become_one(database_url: str) -> None:
    engine = old(database_url, ("alice", A, 1.0))
    assert (await opened(engine, trusting(A, B))).home == A
    engine = make_engine(database_url)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        theirs = _ADD.format(uid=qualified(B, "alice"), issuer=B, namespace="ns-9", subject="alice")
        connection.execute(sa.text(theirs))
    with pytest.raises(AnotherPerson) as raised:
        await opened(engine, trusting(B, b=[A]))
    assert A in raised.value.hint


async def test_managers_that_start_together_agree(database_url: str) -> None:
    engine = make_engine(database_url)
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        facts = Facts(database)
        assert [await facts.settle("home_issuer", one) for one in (A, B)] == [A, A]
        assert await PeopleStore(database).all() == []
    finally:
        await database.close()
