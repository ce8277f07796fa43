"""A hub that is newer than whoever reads it: fields, states and other words nobody here has heard of do no harm."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from client.both import Ask, on_both
from client.test_asking import LUBECK
from client.test_contract import WAITING
from entrypoints.cli.small_server import SmallServer
from hansa.client import Picture
from hansa.messages import configuration, members, membership
from hansa.messages.clusters import StatusChange
from hansa.messages.inventory import ClusterInventory, Inventory

MEMBERS = (members.Joined, members.Heard, members.Desired)
READ: dict[str, Any] = {
    **{name: one.answer for name, one in WAITING.items() if one.answer not in (type(None), bytes) and not one.events},
    **{f"{name} {kind}": shape for name, one in WAITING.items() for kind, shape in one.events.items()},
    **{one.__name__: one for one in (*MEMBERS, membership.Membership)},
}


def narrow(kind: inspect.Type, at: str, seen: frozenset[type]) -> Iterator[str]:
    """Wherever a reader would refuse what it does not know."""
    match kind:
        case inspect.LiteralType() | inspect.EnumType():
            yield f"{at} takes only certain words"
        case inspect.StructType(cls=struct, fields=fields, forbid_unknown_fields=forbids):
            if forbids:
                yield f"{at} takes only certain fields"
            if struct not in seen:
                for field in fields:
                    yield from narrow(field.type, f"{at}.{field.name}", seen | {struct})
        case inspect.UnionType(types=kinds):
            for one in kinds:
                yield from narrow(one, at, seen)
        case (
            inspect.DictType(value_type=inner)
            | inspect.ListType(item_type=inner)
            | inspect.VarTupleType(item_type=inner)
        ):
            yield from narrow(inner, at, seen)
        case inspect.TupleType(item_types=kinds):
            for one in kinds:
                yield from narrow(one, at, seen)
        case inspect.Metadata(type=inner):
            yield from narrow(inner, at, seen)


@pytest.mark.parametrize("name", sorted(READ))
def test_whatever_is_read_may_hold_more_than_we_know(name: str) -> None:
    assert list(narrow(inspect.type_info(READ[name]), name, frozenset())) == []


def test_whatever_is_asked_for_may_not() -> None:
    asked = {name: one.body for name, one in WAITING.items() if one.body is not None}
    assert [name for name, body in asked.items() if not list(narrow(inspect.type_info(body), name, frozenset()))] == []
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"wanted": "hibernate"}', type=StatusChange)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"settings": {}, "scope": {"planet": "x"}}', type=configuration.NewDocument)


STRANGE = {**LUBECK, "state": "hibernating", "kind": "cloud", "tide": {"high": True}}


@on_both
def test_states_of_a_newer_hub_are_texts(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters", {"age": 0.1, "clusters": [STRANGE]})
    (found,) = ask(server.url, "clusters").clusters
    assert (found.state, found.kind) == ("hibernating", "cloud")
    status = {name: STRANGE[name] for name in ("state", "reason", "since", "seen", "cordoned")}
    server.on(
        "GET /v1/clusters/lubeck/status", {**status, "wanted": "hibernate", "cluster": STRANGE, "sections": {"new": 1}}
    )
    assert ask(server.url, "cluster_status", "lubeck").wanted == "hibernate"
    rollout = {
        "id": 1, "document": "base", "version": 2, "former": 1, "state": "dreaming", "stage": 1, "stages": 2,
        "reason": "so it is", "since": 1.0,
    }  # fmt: skip
    server.on("GET /v1/configs/base/rollout", rollout)
    assert ask(server.url, "rollout", "base").state == "dreaming"
    policy = {
        "name": "sea", "kind": "tides", "version": 1, "rules": {"x": 1}, "author": "a", "comment": "", "created": 1.0,
    }  # fmt: skip
    server.on("GET /v1/policies/sea", policy)
    assert ask(server.url, "policy", "sea").kind == "tides"


def test_a_picture_takes_them_as_they_are() -> None:
    part = {
        "id": "lubeck", "kind": "cloud", "state": "hibernating", "region": "eu", "zone": "", "seen": None,
        "totals": {"cpu": 5, "qubits": 3},
    }  # fmt: skip
    one = msgspec.convert(part, ClusterInventory)
    whole = {"at": 1.0, "age": 0.0, "clusters": [part], "regions": {}, "total": {}}
    picture = Picture()
    picture.apply(msgspec.convert(whole, Inventory))
    picture.apply(one)
    assert (dict(picture.by_state), picture.total.cpu) == ({"hibernating": 1}, 5)
