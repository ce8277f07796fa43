"""`hansa federation`: members and credentials in words, a question before revoking, the trail as a table."""

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.kernel.plain_text import plain

PATH = "/v1/services/hello/credentials"
STATE = {
    "service": "hello",
    "state": "expired-or-revoked",
    "since": "2026-01-02T03:04:05Z",
    "sentence": "the refresh token is of no use any more",
    "hint": "give it a new one",
    "source": "own",
    "issuer": "https://issuer",
    "rotates": None,
    "obtained": None,
    "renewed": None,
    "rotation_due": None,
    "access_expires": None,
}


def test_show(admin: SmallServer, hansa: Hansa) -> None:
    admin.on(f"GET {PATH}", STATE)
    told = hansa("federation", "token", "show", "hello")
    assert told.code == 0
    for word in ("expired-or-revoked", "2026-01-02T03:04:05Z", "no use any more", "not known yet", "give it a new one"):
        assert word in told.out
    assert hansa("federation", "token", "show", "hello", "--json").json() == STATE


def test_rotate(admin: SmallServer, hansa: Hansa) -> None:
    admin.on(f"POST {PATH}/rotate", {**STATE, "state": "ok", "rotates": True})
    told = hansa("federation", "token", "rotate", "hello")
    assert told.code == 0
    assert "yes" in told.out


def test_revoke_asks_first(admin: SmallServer, hansa: Hansa) -> None:
    admin.on(f"DELETE {PATH}", {**STATE, "state": "none"})
    assert hansa("federation", "token", "revoke", "hello").code == 2
    assert admin.calls("DELETE") == []
    assert hansa("federation", "token", "revoke", "hello", "--yes").code == 0
    assert len(admin.calls("DELETE")) == 1


def test_audit(admin: SmallServer, hansa: Hansa) -> None:
    entry = {"at": "2026-01-02T03:04:05Z", "actor": "manager", "action": "token.rotated", "detail": "with x"}
    admin.on("GET /v1/services/hello/audit", {"service": "hello", "entries": [entry]})
    told = hansa("federation", "token", "audit", "hello", "--most", "7")
    assert "token.rotated" in told.out
    assert admin.calls("GET")[-1].query == {"most": "7"}
    admin.on("GET /v1/services/calm/audit", {"service": "calm", "entries": []})
    assert "nobody used" in hansa("federation", "token", "audit", "calm").err


def test_the_managers_words_reach_the_person(admin: SmallServer, hansa: Hansa) -> None:
    problem = {"type": "/problems/credentials.none", "detail": "service hello has no refresh token", "hint": "give it"}
    admin.on(f"POST {PATH}/rotate", problem, 409)
    told = hansa("federation", "token", "rotate", "hello")
    assert told.code == 5
    assert "has no refresh token" in told.err
    assert told.err.rstrip().endswith("give it")


SEEN = {"member": "visby/hello-v", "reachable": True, "in_sync": False, "last_seen": "2026-01-02T03:04:05Z"}
FEDERATION = {
    "topology": "star",
    "members": [{"type": "oscar", "cluster_id": "visby", "service_name": "hello-v", "priority": 0}],
    "state": [{**SEEN, "definition": "ab", "trouble": "it was changed there: script"}],
    "credentials": STATE,
}


def test_show_says_what_differs_and_with_which_credentials(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/federation/hello", FEDERATION)
    told = hansa("federation", "show", "hello")
    assert told.out.splitlines() == [
        "hello",
        "└─ visby/hello-v  (out of sync; it was changed there: script)",
        "credentials: the refresh token is of no use any more",
    ]
    assert "expired-or-revoked since 2026-01-02T03:04:05Z; give it a new one" in told.err
    assert admin.calls("GET")[-1].query == {"state": "true"}
    assert hansa("federation", "show", "hello", "--json").json() == FEDERATION


def test_show_lets_no_member_command_the_terminal(admin: SmallServer, hansa: Hansa) -> None:
    trouble = "\x9b2J\u202egnp.exe\u2066 and\n└─ riga/hello  (in sync)"
    admin.on("GET /system/federation/hello", {**FEDERATION, "state": [{**SEEN, "trouble": trouble}]})
    told = hansa("federation", "show", "hello")
    assert told.out.splitlines()[1] == "└─ visby/hello-v  (out of sync; �2J�gnp.exe� and └─ riga/hello  (in sync))"
    written = hansa("federation", "show", "hello", "--json")
    assert plain(written.out) == written.out
    assert written.json()["state"][0]["trouble"] == trouble


@pytest.mark.parametrize(
    ("standing", "line"),
    [
        ({"state": "ok", "sentence": "the refresh token works", "hint": "soon due"}, "the refresh token works"),
        ({"state": "none", "since": None}, "no refresh token; users and passwords in its clusters are used"),
    ],
)
def test_show_does_not_warn_of_what_works(
    admin: SmallServer, hansa: Hansa, standing: dict[str, str | None], line: str
) -> None:
    admin.on("GET /system/federation/hello", {**FEDERATION, "credentials": {**STATE, **standing}})
    told = hansa("federation", "show", "hello")
    assert told.out.splitlines()[-1] == f"credentials: {line}"
    assert told.err == ""


def test_show_of_an_older_manager_and_of_a_service_without_members(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/federation/hello", {"topology": "star", "members": FEDERATION["members"]})
    assert hansa("federation", "show", "hello").out.splitlines() == ["hello", "└─ visby/hello-v"]
    admin.on("GET /system/federation/alone", {"topology": "none", "members": None, "credentials": STATE})
    told = hansa("federation", "show", "alone")
    assert ("credentials" in told.out, "no members" in told.err) == (False, True)


def test_add_sends_no_password_unasked(server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSA_PASSWORD", "of-visby")
    assert hansa("login", "http://127.0.0.2:1", "-n", "visby", "--user", "admin", "--no-check").code == 0
    assert hansa("login", server.url, "-n", "lubeck", "--user", "admin", "--no-check").code == 0
    monkeypatch.delenv("HANSA_PASSWORD")
    server.on("GET /v1/about", {"name": "hansa"}, Content_Type="application/json")
    server.on(f"GET {PATH}", {**STATE, "state": "none"})
    server.on("POST /system/federation/hello", {"topology": "star", "members": []})
    ran = hansa("federation", "add", "hello", "visby/hello-v")
    assert (ran.code, server.calls("POST")) == (1, [])
    assert "user admin of visby" in ran.err
    assert hansa("federation", "add", "hello", "visby/hello-v", "--send-credentials").code == 0
    (sent,) = server.calls("POST")
    assert sent.json()["clusters"]["visby"]["auth_password"] == "of-visby"


def test_add_sends_no_password_where_a_refresh_token_serves(
    server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANSA_PASSWORD", "of-visby")
    assert hansa("login", "http://127.0.0.2:1", "-n", "visby", "--user", "admin", "--no-check").code == 0
    assert hansa("login", server.url, "-n", "lubeck", "--user", "admin", "--no-check").code == 0
    server.on("GET /v1/about", {"name": "hansa"}, Content_Type="application/json")
    server.on(f"GET {PATH}", {**STATE, "state": "ok"})
    server.on("POST /system/federation/hello", {"topology": "star", "members": []})
    assert hansa("federation", "add", "hello", "visby/hello-v").code == 0
    (sent,) = server.calls("POST")
    assert sent.json()["clusters"]["visby"]["auth_password"] == ""
