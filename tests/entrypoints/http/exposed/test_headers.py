"""Which headers pass, for any headers at all? The attacks with a real service are in journeys/test_tenant_pages.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.http.exposed import headers

BASE = "/system/services/page/exposed"
NAMES = st.one_of(
    st.sampled_from(
        [b"authorization", b"Authorization", b"proxy_authorization", b"cookie", b"Set-Cookie", b"connection", b"x-own",
         b"Clear-Site-Data", b"content-security-policy", b"X-Accel-Redirect", b"content-length", b"upgrade"]
    ),
    st.binary(min_size=1, max_size=12),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([b"close, X-Own", b"oscar_service_page_auth=x", b"a=1; Path=/", b"content-security-policy"]),
    st.binary(max_size=30),
)
RAW = st.lists(st.tuples(NAMES, VALUES), max_size=8)
NEVER_IN = {b"authorization", b"proxy-authorization", b"connection", b"upgrade", b"transfer-encoding", b"cookie"}
NEVER_OUT = {b"clear-site-data", b"service-worker-allowed", b"x-accel-redirect", b"connection", b"upgrade"}


@given(RAW)
def test_nothing_of_ours_goes_in(raw: list[tuple[bytes, bytes]]) -> None:
    passed = {name.lower().replace(b"_", b"-") for name, _ in headers.inward(raw)}
    assert not passed & NEVER_IN
    assert "oscar_service_page_auth" not in headers.cookie(raw).lower()


@given(RAW)
def test_nothing_for_the_whole_origin_comes_out(raw: list[tuple[bytes, bytes]]) -> None:
    kept = headers.outward(raw, BASE, sandboxed=True)
    assert not {name.lower() for name, _ in kept} & NEVER_OUT
    assert kept[-1] == (b"content-security-policy", headers.SANDBOX)
    for name, value in kept:
        if name.lower() == b"set-cookie":
            assert value.endswith(f"Path={BASE}".encode()) or f"Path={BASE}/".encode() in value


def test_the_rest_passes_as_it_is() -> None:
    raw = [(b"X-Own", b"1"), (b"accept", b"*/*"), (b"x-own", b"2")]
    assert headers.inward(raw) == raw
    assert headers.outward(raw, BASE, sandboxed=False) == raw


def test_what_a_process_agrees_to_is_all_that_a_visitor_hears_of_its_handshake() -> None:
    told = [b"Sec-WebSocket-Accept: x", b"sec-websocket-protocol: chat\t, more"]
    assert headers.agreed([*told, b"Set-Cookie: a=b", b"sec-websocket-key: k", b"sec-websocket-accept"]) == told


@pytest.mark.parametrize("control", [b"\r", b"\n", b"\0", b"\x0b", b"\x7f"])
def test_no_line_of_it_holds_another(control: bytes) -> None:
    assert headers.agreed([b"sec-websocket-protocol: chat" + control + b"set-cookie: a=b"]) == []
