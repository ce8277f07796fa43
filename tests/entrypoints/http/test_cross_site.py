"""Which requests come from another site's page, and which from people and programs?"""

import pytest

from hansa.entrypoints.http import cross_site

HOST = (b"host", b"hansa.example.org")
JSON = (b"content-type", b"application/json")


@pytest.mark.parametrize(
    "headers",
    [
        [],  # a program
        [(b"content-type", b"text/plain")],
        [(b"content-type", b"application/x-www-form-urlencoded")],  # curl -d
        [(b"sec-fetch-site", b"same-origin"), (b"origin", b"https://hansa.example.org"), JSON],
        [(b"sec-fetch-site", b"none")],
        [(b"origin", b"https://hansa.example.org"), JSON],  # a proxy ends TLS
        [(b"origin", b"http://HANSA.example.org"), JSON],
        [(b"origin", b"https://hansa.example.org:443"), JSON],
        [(b"origin", b"https://public.example.org"), JSON],  # what the operator says of the proxy in front
    ],
)
def test_allowed(headers: list[tuple[bytes, bytes]]) -> None:
    cross_site.check("/system/services", [HOST, *headers], "https://public.example.org/hansa")


@pytest.mark.parametrize(
    "headers",
    [
        [(b"sec-fetch-site", b"cross-site")],
        [(b"sec-fetch-site", b"same-site")],
        [(b"sec-fetch-site", b"Cross-Site")],
        [(b"sec-fetch-site", b"")],
        [(b"sec-fetch-site", b"none"), (b"sec-fetch-site", b"cross-site")],
        [(b"sec-fetch-site", b"none"), (b"origin", b"https://evil.example.org"), JSON],
        [(b"origin", b"https://evil.example.org"), JSON],
        [(b"origin", b"null"), JSON],
        [(b"origin", b""), JSON],
        [(b"origin", b"https://hansa.example.org.evil.example.org"), JSON],
        [(b"origin", b"https://hansa.example.org:8443"), JSON],
        [(b"origin", b"https://hansa.example.org@evil.example.org"), JSON],
        [(b"origin", b"file://hansa.example.org"), JSON],
        [(b"origin", b"https://hansa.example.org"), (b"origin", b"https://evil.example.org"), JSON],
        [(b"origin", b"https://hansa.example.org"), (b"content-type", b"text/plain;charset=UTF-8")],
        [(b"origin", b"https://hansa.example.org"), (b"content-type", b"Multipart/Form-Data; boundary=x")],
        [(b"origin", b"https://hansa.example.org"), (b"content-type", b"application/x-www-form-urlencoded")],
    ],
)
def test_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(cross_site.CrossSite) as refused:
        cross_site.check("/system/services", [HOST, *headers], "https://public.example.org/hansa")
    assert refused.value.hint


def test_a_page_of_ours_may_send_any_input_to_a_job() -> None:
    own = [HOST, (b"origin", b"https://hansa.example.org"), (b"content-type", b"text/plain")]
    cross_site.check("/job/cowsay", own)
    with pytest.raises(cross_site.CrossSite):
        cross_site.check("/job/cowsay", [HOST, (b"origin", b"https://evil.example.org")])
