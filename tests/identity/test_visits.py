"""Does a visit open one service to one visitor for a while, and nothing else to anybody?"""

import base64
import json

import pytest

from hansa.identity import VISIT_SECONDS, Caller, Vault, Visits

TOKEN = "a" * 64
DORA = Caller(kind="user", uid="dora@test", name="Dora", issuer="https://issuer.test")


class MovableClock:
    at = 1_000_000.0

    def now(self) -> float:
        return self.at


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def visits(clock: MovableClock) -> Visits:
    return Visits(b"k" * 32, clock)


@pytest.mark.parametrize("caller", [DORA, Caller.admin(), Caller.of_service("page", "alice@test")])
def test_it_says_who_the_visitor_is(visits: Visits, caller: Caller) -> None:
    visit = visits.issue(caller, service="page", token=TOKEN)
    found = visits.caller(visit, service="page", token=TOKEN)
    assert found is not None
    assert (found.kind, found.uid, found.issuer, found.service) == (
        caller.kind,
        caller.uid,
        caller.issuer,
        caller.service,
    )
    assert not found.admin_view  # a visit is good for a visit


def test_it_ends_by_itself(visits: Visits, clock: MovableClock) -> None:
    visit = visits.issue(DORA, service="page", token=TOKEN)
    clock.at += VISIT_SECONDS - 1
    assert visits.caller(visit, service="page", token=TOKEN) is not None
    clock.at += 1
    assert visits.caller(visit, service="page", token=TOKEN) is None


def test_it_is_for_one_service_with_one_token_at_one_manager(visits: Visits, clock: MovableClock) -> None:
    visit = visits.issue(DORA, service="page", token=TOKEN)
    assert visits.caller(visit, service="other", token=TOKEN) is None
    assert visits.caller(visit, service="page", token="b" * 64) is None
    assert Visits(b"l" * 32, clock).caller(visit, service="page", token=TOKEN) is None


def test_it_does_not_hold_the_token(visits: Visits) -> None:
    visit = visits.issue(DORA, service="page", token=TOKEN)
    assert TOKEN not in visit
    assert TOKEN not in base64.urlsafe_b64decode(visit.partition(".")[0] + "==").decode()


@pytest.mark.parametrize("forged", ["", ".", "x", "x.y", "ü.ü", "e30.e30", "W10.", "\x00", "a" * 5000])
def test_what_we_did_not_sign_is_nothing(visits: Visits, forged: str) -> None:
    assert visits.caller(forged, service="page", token=TOKEN) is None


def test_a_changed_visit_is_nothing(visits: Visits) -> None:
    payload, _, signature = visits.issue(DORA, service="page", token=TOKEN).partition(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    for at, value in ((0, "other"), (1, "admin"), (2, "alice@test"), (5, 10**12)):
        changed = [*claims]
        changed[at] = value
        again = base64.urlsafe_b64encode(json.dumps(changed, separators=(",", ":")).encode()).decode().rstrip("=")
        assert visits.caller(f"{again}.{signature}", service="page", token=TOKEN) is None
        assert visits.caller(f"{again}.{signature}", service="other", token=TOKEN) is None


def test_the_vault_gives_keys_for_signing_that_say_nothing_of_its_own() -> None:
    key = Vault.new_key()
    assert Vault([key]).derived("visits") == Vault([key]).derived("visits")
    assert Vault([key]).derived("visits") != Vault([key]).derived("other")
    assert Vault([key]).derived("visits") != Vault([Vault.new_key()]).derived("visits")
