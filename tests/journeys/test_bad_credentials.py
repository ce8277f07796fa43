"""Do wrong, old, foreign and forged credentials open nothing, on any route, and never come back in an answer?"""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from journeys.bad_input import Caller, Victim, nothing_changes, operations, precise
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager
from real.rogue_issuer import rogue_issuer

HEADERS: list[bytes] = [
    b"",
    b" ",
    b"Basic",
    b"Basic ",
    b"Basic !!!",
    b"Basic " + b"QQ" * 5000,
    b"Basic " + base64.b64encode(b"admin"),
    b"Basic " + base64.b64encode(b"admin:"),
    b"Basic " + base64.b64encode(b"admin:wrong"),
    b"Basic " + base64.b64encode(b"\xff\xfe:\xff"),
    b"Basic " + base64.b64encode(b"admin:a\x00b"),
    b"Bearer",
    b"Bearer ",
    b"Bearer a b",
    b"Bearer a.b.c",
    b"Bearer " + b"0" * 64,
    b"Bearer " + b"f" * 64,
    b"Bearer " + b"x" * 30_000,
    b"Bearer \xc3\xbc\xff",
    b"Bearer ..",
    b"Bearer e30.e30.e30",
    b"Negotiate abc",
    b"\xff\xfe",
    b"basic:admin",
]


@pytest.fixture(scope="module")
def caller(manager: Manager) -> Iterator[Caller]:
    made = Caller(manager)
    yield made
    made.close()


def guarded(manager: Manager) -> list[tuple[str, str]]:
    """Every operation that needs credentials."""
    document = manager.anonymous.get("/openapi.json").json()
    return [
        (method, path)
        for method, path, operation in operations(document)
        if operation.get("security") and {} not in operation["security"]
    ]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: repr(header[:24]))
def test_nothing_opens(header: bytes, manager: Manager, caller: Caller, victim: Victim) -> None:
    routes = guarded(manager)
    assert len(routes) > 45
    with nothing_changes(manager, victim):
        for method, path in routes:
            answer = caller.ask(method, path.format_map(victim.values()), b"", Authorization=header)
            precise(answer, 401)
            assert answer.headers["www-authenticate"].startswith("Basic ")
            given = header.partition(b" ")[2].decode("latin-1")
            assert len(given) < 8 or given[:20] not in answer.text


def test_a_token_of_64_kib_is_cut_off(manager: Manager) -> None:
    sender = Caller(manager)
    try:
        answer = sender.ask("GET", "/system/info", Authorization=b"Bearer " + b"x" * 65536)
        assert answer.status in (401, 431)
    except (ConnectionResetError, BrokenPipeError):
        pass  # still sending when the manager had enough
    finally:
        sender.close()
    assert manager.anonymous.get("/health").status_code == 200


def test_two_headers_are_one_too_many(manager: Manager) -> None:
    """Whoever stands in front may have checked the other one."""
    good = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    sender = Caller(manager, f"Basic {good}")
    for path in ("/system/info", "/v1/node", "/system/services"):
        precise(sender.ask("GET", path, Authorization=b"Bearer x"), 401)
    precise(sender.ask("POST", "/job/some-service", Authorization=b"Bearer x"), 401)
    assert sender.ask("GET", "/system/info").status == 200
    sender.close()


def part(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def test_tokens_nobody_signed(
    manager: Manager, sign_in_provider: IdentityProvider, caller: Caller, victim: Victim
) -> None:
    good = sign_in_provider.token("alice")
    head, payload, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    tokens = [
        *(f"{part({'alg': alg})}.{payload}." for alg in ("none", "None", "NONE", "")),
        f"{part({'alg': 'HS256'})}.{payload}.{signature}",
        f"{part({'alg': 'RS256', 'kid': '../../etc/passwd'})}.{payload}.{signature}",
        f"{part({'alg': 'RS256', 'jku': 'http://127.0.0.1:1/keys'})}.{payload}.{signature}",
        f"{head}.{part({**claims, 'sub': 'bob@test'})}.{signature}",
        f"{head}.{part({**claims, 'exp': 10**12})}.{signature}",
        f"{head}.{part({**claims, 'iss': 'http://127.0.0.1:1/realms/test'})}.{signature}",
        f"{head}.{part({**claims, 'iss': None})}.{signature}",
        f"{head}.{payload}.",
        f"{head}.{payload}",
        f"{head}.{payload}.{signature[:-8]}AAAAAAAA",
        f"{head}..{signature}",
        f"{head}.{base64.urlsafe_b64encode(b'[' * 5000).decode()}.{signature}",
        sign_in_provider.token("alice", realm="stranger"),
    ]
    with nothing_changes(manager, victim):
        for token in tokens:
            for method, path in (("GET", "/system/services"), ("POST", f"/job/{victim.service}"), ("GET", "/v1/node")):
                answer = caller.ask(method, path, Authorization=f"Bearer {token}")
                precise(answer, 400, 401)
                assert token[:40] not in answer.text


async def test_old_early_and_foreign_tokens() -> None:
    """An issuer that signs whatever we ask it to."""
    async with rogue_issuer() as issuer:
        settings = {"oidc.issuers": [{"url": issuer.url, "audience": "hansa"}], "log.level": "debug"}
        now = int(time.time())
        fine: dict[str, Any] = {"sub": "alice@test", "aud": "hansa", "iat": now, "exp": now + 300}
        bad: dict[str, dict[str, Any]] = {
            "expired": {"exp": now - 300},
            "not yet": {"nbf": now + 3000},
            "audience": {"aud": "another-cluster"},
            "no audience": {"aud": []},
            "nobody": {"sub": ""},
            "a number": {"sub": 5},
            "a long name": {"sub": "x" * 5000},
            "a name with a line end": {"sub": "a\nb"},
            "no end": {"exp": "never"},
            "another issuer": {"iss": "http://127.0.0.1:1/realms/none"},
        }
        tokens = {what: issuer.token(**{**fine, **change}) for what, change in bad.items()}
        good = issuer.token(**fine)

        def story() -> dict[str, tuple[int, str]]:
            with running_manager(settings) as own:
                assert own.bearer(good).get("/system/info").status_code == 200
                answers = {what: own.bearer(token).get("/system/services") for what, token in tokens.items()}
                assert "Traceback" not in own.log
                return {what: (answer.status_code, answer.text) for what, answer in answers.items()}

        answers = await asyncio.to_thread(story)
    assert {what: status for what, (status, _) in answers.items()} == dict.fromkeys(bad, 401)
    assert "expired" in answers["expired"][1]
