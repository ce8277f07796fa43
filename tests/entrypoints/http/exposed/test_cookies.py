"""Whatever a service or a visitor writes into cookies: ours stay ours, and the service's stay below its path."""

from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.http.exposed import cookies

BASE = "/system/services/page/exposed"
NAMES = st.one_of(
    st.sampled_from(["a", "oscar_service_page_auth", "OSCAR_service_x_AUTH", "__Host-a", "__Secure-hansa", "", " "]),
    st.text(max_size=12),
)
PARTS = st.lists(
    st.one_of(
        st.sampled_from(["Path=/", "path=" + BASE + "/deep", "PATH", "Path=" + BASE + "/../..", "Domain=x", "Secure"]),
        st.text(max_size=20),
    ),
    max_size=5,
)


def attributes(header: str, name: str) -> list[str]:
    parts = (part.strip().partition("=") for part in header.split(";")[1:])
    return [value for key, _, value in parts if key.strip().lower() == name]


@given(NAMES, st.text(max_size=12), PARTS)
def test_no_set_cookie_reaches_beyond_its_service(name: str, value: str, parts: list[str]) -> None:
    kept = cookies.confined("; ".join([f"{name}={value}", *parts]), BASE)
    if not kept:
        return
    [path] = attributes(kept, "path")
    assert path == BASE or path.startswith(BASE + "/")
    assert ".." not in path
    assert "%" not in path
    assert attributes(kept, "domain") == []
    assert not kept.lower().lstrip().startswith(("oscar_service_", "hansa", "__host-", "="))
    assert not any(character in kept for character in "\r\n\0")


@given(st.lists(st.lists(st.tuples(NAMES, st.text(max_size=8)), max_size=4), max_size=3))
def test_no_service_gets_our_cookie(headers: list[list[tuple[str, str]]]) -> None:
    passed = cookies.for_service("; ".join(f"{name}={value}" for name, value in one) for one in headers)
    for part in passed.split(";"):
        name = part.partition("=")[0].strip().lower()
        assert not name.startswith(("oscar_service_x_auth", "oscar_service_page_auth", "__secure-hansa"))


def test_every_value_of_our_cookie_is_looked_at() -> None:
    name = cookies.cookie_name("my-page")
    assert name == "oscar_service_my_page_auth"
    headers = [f'a=1; {name}="one"', f"{name} = two;{name}=three=", f"x{name}=four"]
    assert list(cookies.given(headers, name)) == ["one", "two", "three="]


def test_harmless_cookies_stay_as_they_are() -> None:
    assert cookies.confined("a=b=c; Max-Age=60; HttpOnly", BASE) == f"a=b=c; Max-Age=60; HttpOnly; Path={BASE}"
    assert cookies.for_service(["a=1;b=2", "c"]) == "a=1; b=2; c"
