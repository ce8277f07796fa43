"""What a hostile tenant does, step by step, as Hypothesis draws it."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from journeys.attacks.fuzz.definitions import definitions
from journeys.attacks.fuzz.messages import bodies, headers
from journeys.attacks.fuzz.routes import requests
from journeys.attacks.fuzz.values import buckets, keys, mostly


@dataclass(frozen=True)
class Call:
    """Of the service that was made a moment ago, or of somebody else's."""

    door: str  # job, run or exposed
    to: str  # "" is the own service
    by: str  # token (of the service) or bearer (of the tenant)
    body: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Service:
    definition: dict[str, Any]
    spelling: str  # how its keys are written
    changed: dict[str, Any] | None  # what it is updated to before it is called
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class StoreCall:
    """Straight to the object store, with the tenant's own keys."""

    verb: str
    bucket: str
    key: str


_calls = st.builds(
    Call,
    st.sampled_from(("job", "job", "run", "exposed")),
    st.sampled_from(("", "", "", "", "@SERVICE@", "@PAGE@")),
    st.sampled_from(("bearer", "token")),
    bodies,
    mostly(st.just({}), headers, 5),
)
_services = st.builds(
    Service,
    definitions(),
    st.sampled_from(("plain", "plain", "plain", "upper", "twice")),
    mostly(st.none(), definitions(), 2),
    st.lists(_calls, min_size=1, max_size=3).map(tuple),
)
_requests = st.builds(
    lambda asked, given: Request(asked[0], asked[1], asked[2], asked[3], given),
    requests(),
    mostly(st.just({}), headers, 5),
)
_store_calls = st.builds(StoreCall, st.sampled_from(("get", "put", "copy", "list", "delete", "acl")), buckets, keys)
Step = Service | Request | StoreCall
_nothing = st.just(Request("GET", "/health", {}, None, {}))  # what a step shrinks to that does not matter
_others = st.one_of(_nothing, _requests, _store_calls)
_step: st.SearchStrategy[Step] = st.integers(0, 3).flatmap(lambda number: _services if number else _others)
steps = st.lists(_step, min_size=6, max_size=10)
