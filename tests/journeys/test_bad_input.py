"""Is every malformed body refused precisely, soon, and without changing anything?"""

import base64
import gzip
import json
import socket
import time
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import httpx
import msgspec
import pytest

from hansa.services import Service
from journeys.bad_input import Caller, Victim, nothing_changes, operations, precise
from real.manager import Manager

GOOD: dict[str, Any] = {"name": "never-made", "image": "debian", "script": "true", "memory": "64Mi"}
MISSHAPEN = {
    "nothing": b"",
    "words": b"not json",
    "a list": b"[]",
    "a number": b"3",
    "a text": b'"text"',
    "null": b"null",
    "two documents": b"{}{}",
    "cut short": b'{"name": "never-made", "image": "deb',
    "100,000 lists deep": b"[" * 100_000,
    "100,000 objects deep": b'{"a":' * 100_000,
    "deep where nobody looks": b'{"unknown":' + b"[" * 100 + b"]" * 100 + b"}",
    "a NUL in a value": b'{"name": "never\\u0000made"}',
    "a NUL in a key": b'{"na\\u0000me": "x"}',
    "a raw NUL": b'{"name": "never\x00made"}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "a latin-1 text": '{"name": "Müller"}'.encode("latin-1"),
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "not a number": b'{"name": NaN}',
    "a number without end": b'{"name": 1' + b"0" * 5000 + b"}",
    "packed": gzip.compress(json.dumps(GOOD).encode()),
    "a form": b"name=never-made&image=debian",
}


@pytest.fixture(scope="module")
def caller(manager: Manager) -> Iterator[Caller]:
    given = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    made = Caller(manager, f"Basic {given}")
    yield made
    made.close()


def takes_json(manager: Manager) -> list[tuple[str, str, str]]:
    """Method, path and kind of errors of every route that people send a JSON body to."""
    document = manager.anonymous.get("/openapi.json").json()
    return [
        (method, path, next(iter(operation["responses"]["400"]["content"])))
        for method, path, operation in operations(document)
        if "application/json" in operation.get("requestBody", {}).get("content", {})
        and {"admin": []} in operation["security"]
    ]


@pytest.mark.parametrize("body", MISSHAPEN.values(), ids=list(MISSHAPEN))
def test_a_misshapen_body(body: bytes, manager: Manager, caller: Caller, victim: Victim) -> None:
    routes = takes_json(manager)
    assert len(routes) >= 13
    with nothing_changes(manager, victim):
        for method, path, _ in routes:
            answer = caller.ask(method, path.format_map(victim.values()), body, Content_Type="application/json")
            precise(answer, 400, 413)
            assert "body" in answer.text or "never" in answer.text


def test_packed_bodies_are_not_unpacked(manager: Manager, caller: Caller, victim: Victim) -> None:
    with nothing_changes(manager, victim):
        for body in (gzip.compress(json.dumps(GOOD).encode()), b"\x1f\x8b garbage"):
            answer = caller.ask("POST", "/system/services", body, Content_Encoding="gzip")
            precise(answer, 400)


@pytest.mark.parametrize("size", [17 * 2**20, 10**12, 10**30])
def test_a_body_whose_length_is_too_much_is_not_waited_for(size: int, manager: Manager, victim: Victim) -> None:
    """Only the head is sent; the answer comes all the same."""
    given = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    for method, path, _ in takes_json(manager):
        started = time.monotonic()
        with socket.create_connection(("127.0.0.1", manager.port), timeout=10) as client:
            head = (
                f"{method} {path.format_map(victim.values())} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {given}\r\n"
            )
            client.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
            answer = client.recv(65536).decode()
        assert answer.split()[1] in (("413",) if size < 10**20 else ("413", "400")), answer
        assert time.monotonic() - started < 5


def kind_of(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(kind for kind in get_args(hint) if kind not in (type(None), msgspec.UnsetType))
    return hint


def wrong_values(hint: Any) -> list[Any]:
    kind = kind_of(hint)
    plain: dict[Any, list[Any]] = {
        str: [1, 1.5, True, [], {}],
        bool: ["true", 1, 0, [], {}],
        int: ["x", 1.5, True, [], {}, 2**200],
        float: ["x", True, [], {}],
    }
    if kind in plain:
        return plain[kind]
    if get_origin(kind) is tuple:
        return ["x", True, {}, [None] if get_args(kind)[0] is int else [[]]]
    return ["x", 1, True, []]  # an object


def wrong_fields(kind: type = Service, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field of a definition, however deep, with values it cannot have."""
    for name, hint in get_type_hints(kind).items():
        if name.startswith("__"):
            continue
        inner = kind_of(hint)
        for value in wrong_values(hint):
            yield (*way, name), value
        nested = get_args(inner)[0] if get_origin(inner) is tuple else inner
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct):
            yield from wrong_fields(nested, (*way, name + ("[]" if nested is not inner else "")))


LEGACY = {"rescheduler_threshold": str, "api_port": int, "nodePort": int}  # older clients write them like this


def test_a_wrong_type_in_every_field(manager: Manager, caller: Caller, victim: Victim) -> None:
    tried = 0
    with nothing_changes(manager, victim):
        for way, value in wrong_fields():
            if isinstance(value, LEGACY.get(way[-1], ())) and not isinstance(value, bool):
                continue
            document: Any = value
            for step in reversed(way):
                document = {step.removesuffix("[]"): [document] if step.endswith("[]") else document}
            for method in ("POST", "PUT"):
                answer = caller.ask(method, "/system/services", json.dumps({**GOOD, **document}).encode())
                assert answer.status == 400, (way, value, answer)
                precise(answer, 400)
                assert way[-1] in answer.text or value == 2**200, (way, value, answer.text)
                tried += 1
    assert tried > 400


LONG = "x" * 5000
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(("name", {"name": name}, "name") for name in ("", " ", ".", "..", "A", "a_b", "-a", "a-", "ä", "a\n", LONG)),
    *(
        (field, {field: value}, field)
        for field in ("cpu", "memory")
        for value in ("", "0", "-1", "x", "1 Gi", "NaN", "inf", "0x10", "1e99", "1e999", "٣", "1\n2", "9" * 5000, "1Xi")
    ),
    *((field, {field: "many"}, field) for field in ("total_cpu", "total_memory", "ephemeral_storage_request")),
    *(("image", {"image": image}, "image") for image in ("", "  ", "two words", "a\nb", LONG)),
    *(("script", {"script": script}, "script") for script in ("", "  ", "\r\n", "x" * (2**20 + 1))),
    *(
        (f"{field} path", {field: [{"storage_provider": "minio.default", "path": path}]}, "path")
        for field in ("input", "output")
        for path in ("", "/", "//", ".", "..", "../etc", "bad/../../etc", "bad//in", "bad/./in", "bad/in\nside", LONG)
    ),
    *(
        ("bucket", {"output": [{"storage_provider": "minio", "path": f"{bucket}/out"}]}, "bucket")
        for bucket in ("A", "a", "a_b", "-ab", "1.2.3.4", "a..b", "ä" * 3, "x" * 64)
    ),
    *(
        ("provider", {"output": [{"storage_provider": provider, "path": "never/out"}]}, "storage_provider")
        for provider in ("", "ftp", "minio.unknown", "..", LONG)
    ),
    ("foreign input", {"input": [{"storage_provider": "s3.mine", "path": "a/b"}]}, "input"),
    ("mount", {"mount": {"storage_provider": "minio", "path": ".."}}, "path"),
    ("mount options", {"mount": {"storage_provider": "minio", "path": "abc/x", "options": "a;b"}}, "mount.options"),
    ("visibility", {"visibility": "secret"}, "visibility"),
    *(("variable", {"environment": {"variables": {key: "x"}}}, "variable") for key in ("", "A B", "1A", "A=B", LONG)),
    *(("secret", {"environment": {"secrets": {key: "x"}}}, "variable") for key in ("", "A\nB")),
    *(("port", {"expose": {"api_port": [port]}}, "api_port") for port in (-1, 65536, 2**40)),
    ("ports", {"expose": {"api_port": [80], "nodePort": [1, 2]}}, "nodePort"),
    *(
        (f"{group} {field}", {group: {field: number}}, field)
        for group in ("synchronous", "expose")
        for field in ("min_scale", "max_scale")
        for number in (-1, 2**40)
    ),
    ("cpu threshold", {"expose": {"cpu_threshold": -1}}, "cpu_threshold"),
    ("threshold", {"federation": {"rescheduler_threshold": 2**40}}, "rescheduler_threshold"),
    ("scales", {"synchronous": {"min_scale": 3, "max_scale": 1}}, "max_scale"),
    ("health", {"expose": {"api_port": [80], "health_path": "/../x"}}, "health_path"),
    *(
        ("volume", {"volume": {"size": "1Gi", "mount_path": path}}, "mount_path")
        for path in ("", "data", "/", "/a/../b", "/etc", "/oscar/bin/x", "/" + LONG)
    ),
    *(("volume size", {"volume": {"size": size, "mount_path": "/d"}}, "volume.size") for size in ("0", "much", "-1")),
    ("volume name", {"volume": {"name": "..", "mount_path": "/d"}}, "volume name"),
    ("topology", {"federation": {"topology": "ring"}}, "topology"),
    ("delegation", {"federation": {"delegation": "dice"}}, "delegation"),
    *(
        ("member", {"federation": {"topology": "star", "members": [member]}}, "member")
        for member in (
            {"type": "car"},
            {"type": "oscar"},
            {"type": "endpoint", "url": "file:///etc/passwd"},
            {"type": "oscar", "cluster_id": "c", "service_name": "s", "priority": -1},
            {"type": "oscar", "cluster_id": LONG, "service_name": "s"},
        )
    ),
    *((field, {field: LONG}, field) for field in ("cluster_id", "vo", "isolation_level", "interlink_node_name")),
    *((field, {field: [LONG]}, field) for field in ("allowed_users", "image_pull_secrets")),
    *(
        (field, {field: {LONG: "x"}}, field)
        for field in ("annotations", "labels", "clusters", "storage_providers")
        if field != "clusters"
    ),
    ("a cluster's name", {"clusters": {LONG: {}}}, "clusters"),
    ("too many", {"labels": {str(number): "x" for number in range(300)}}, "labels"),
    ("keys of a store", {"storage_providers": {"s3": {"x": {"access_key": 5, "secret_key": ["a"]}}}}, "s3"),
]


@pytest.mark.parametrize("client", ["admin", "alice"])
def test_a_definition_nobody_can_run(
    client: str, manager: Manager, victim: Victim, request: pytest.FixtureRequest
) -> None:
    sender: httpx.Client = request.getfixturevalue(client)
    wrong = []
    with nothing_changes(manager, victim):
        for what, change, named in REFUSED:
            answer = sender.post("/system/services", json={**GOOD, **change})
            if answer.status_code != 400 or named not in answer.text or len(answer.text) > 500:
                wrong.append((what, str(change)[:100], answer.status_code, answer.text[:200]))
                sender.delete("/system/services/never-made")
    assert not wrong, "\n".join(map(str, wrong))


def test_unknown_fields_are_ignored_as_oscars_clients_expect(alice: httpx.Client) -> None:
    definition = {**GOOD, "name": "with-more", "replicas": [], "rescheduler_threshold": "", "colour": {"a": [1]}}
    try:
        assert alice.post("/system/services", json=definition).status_code == 201
        assert "colour" not in alice.get("/system/services/with-more").json()
    finally:
        assert alice.delete("/system/services/with-more").status_code == 204


def test_the_last_of_two_equal_keys_counts(alice: httpx.Client) -> None:
    body = b'{"name": "first", "image": "debian", "script": "true", "name": "second-one"}'
    try:
        assert alice.post("/system/services", content=body).status_code == 201
        assert alice.get("/system/services/first").status_code == 404
        assert alice.get("/system/services/second-one").status_code == 200
    finally:
        assert alice.delete("/system/services/second-one").status_code == 204


OTHER: list[tuple[str, str, dict[str, Any]]] = [
    *(("POST", "/system/buckets", {"bucket_name": name}) for name in ("", "..", "A", "a_b", "1.2.3.4", "a..b", LONG)),
    ("POST", "/system/buckets", {}),
    ("POST", "/system/buckets", {"bucket_name": "never-made", "visibility": "secret"}),
    ("POST", "/system/buckets", {"bucket_name": "never-made", "visibility": "restricted", "allowed_users": "x"}),
    ("POST", "/system/buckets", {"bucket_name": "never-made", "visibility": "restricted", "allowed_users": [LONG]}),
    ("PUT", "/system/buckets", {"bucket_name": "{bucket}", "visibility": "secret"}),
    ("PUT", "/system/buckets", {"bucket_name": ".."}),
    *(
        ("POST", "/system/buckets/{bucket}/presign", {"operation": "upload", "object_key": key})
        for key in ("", "/", "..", "a/../b", "a\nb", LONG)
    ),
    ("POST", "/system/buckets/{bucket}/presign", {"object_key": "x"}),
    ("POST", "/system/buckets/{bucket}/presign", {"object_key": "x", "operation": "eat"}),
    *(
        ("POST", "/system/buckets/{bucket}/presign", {"object_key": "x", "operation": "upload", "expires_in": seconds})
        for seconds in (-1, 604_801, 2**70, "900", 1.5)
    ),
    ("POST", "/system/buckets/{bucket}/presign",
     {"object_key": "x", "operation": "upload", "extra_headers": {"a b": "x"}}),
    ("POST", "/system/buckets/{bucket}/presign",
     {"object_key": "x", "operation": "upload", "extra_headers": {"x-a": "line\nline"}}),
    *(("POST", "/system/volumes", {"name": name, "size": "1Gi"}) for name in ("", "..", "A", "a/b", LONG)),
    *(("POST", "/system/volumes", {"name": "never", "size": size}) for size in ("", "0", "-1Gi", "much", "9" * 5000)),
    ("POST", "/system/volumes", {"name": "never"}),
    *(("PUT", "/system/quotas/user/{user_id}", {"cpu": value}) for value in ("x", "-1", "1e99", 5, "9" * 5000)),
    ("PUT", "/system/quotas/user/{user_id}", {}),
    ("PUT", "/system/quotas/user/{user_id}", {"gpu": "1"}),
    ("PUT", "/system/quotas/user/{user_id}", {"volumes": {"volumes": "many"}}),
    ("PUT", "/system/config", {"allowed_image_repositories": "all"}),
    ("PUT", "/system/config", {"allowed_image_repositories": [1]}),
    ("PUT", "/system/config", {"allowed_image_repositories": [LONG]}),
    *(
        (method, f"/system/{door}/{{service}}", {"members": [member]})
        for method in ("POST", "PUT")
        for door in ("federation", "replicas")
        for member in ({"type": "car"}, {"type": "oscar"}, {"type": "endpoint", "url": "ftp://x"}, "x", None)
    ),
]  # fmt: skip


def test_other_bodies_that_mean_nothing(manager: Manager, admin: httpx.Client, victim: Victim) -> None:
    wrong = []
    with nothing_changes(manager, victim):
        for method, path, body in OTHER:
            text = json.dumps(body).replace("{bucket}", victim.bucket)
            answer = admin.request(method, path.format_map(victim.values()), content=text)
            if answer.status_code not in (400, 404, 409) or not 3 < len(answer.text) < 500:
                wrong.append((method, path, text[:100], answer.status_code, answer.text[:200]))
    assert not wrong, "\n".join(map(str, wrong))
