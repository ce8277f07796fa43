"""Whose pages live at which host?"""

import pytest

from hansa.entrypoints.http.exposed import paths
from hansa.entrypoints.http.exposed.origins import Origins
from hansa.kernel.tenants import ExposedSettings


@pytest.mark.parametrize(
    ("url", "host", "place"),
    [
        ("", "anything", None),
        ("https://pages.example.org", "pages.example.org", ""),
        ("https://pages.example.org", "PAGES.example.org:443", ""),
        ("https://pages.example.org", "pages.example.org:8443", None),
        ("https://pages.example.org", "pagesXexample.org", None),
        ("https://pages.example.org", "a.pages.example.org", None),
        ("http://host:8081", "host:8081", ""),
        ("http://host:8081", "host:8080", None),
        ("https://{service}.pages.example.org", "my-page.pages.example.org", "my-page"),
        ("https://{service}.pages.example.org", "My-Page.pages.example.org", "my-page"),
        ("https://{service}.pages.example.org", "pages.example.org", None),
        ("https://{service}.pages.example.org", "a.b.pages.example.org", None),
        ("https://{service}.pages.example.org", "evil.org/.pages.example.org", None),
        ("https://{service}.pages.example.org", "", None),
    ],
)
def test_the_host_tells(url: str, host: str, place: str | None) -> None:
    assert Origins(ExposedSettings(url=url)).place(host) == place


@pytest.mark.parametrize(
    "url", ["pages.example.org", "https://", "https://x/{service}", "https://{user}.x", "ftp://x", "https://x{service}"]
)
def test_addresses_that_make_no_sense_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        ExposedSettings(url=url)


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/system/services/page/exposed", "page"),
        ("/system/services/page/exposed/", "page"),
        ("/system/services/page/exposed/x/y", "page"),
        ("/system/services/page/exposed-not", ""),
        ("/system/services/exposed", ""),
        ("/system/services/exposed/stop", ""),
        ("/system/services/exposed/exposed/x", "exposed"),
        ("/system/services//exposed", ""),
        ("/v1/x/exposed", ""),
        ("/job/exposed", ""),
    ],
)
def test_which_paths_are_tenants_own(path: str, service: str) -> None:
    assert paths.service_in(path) == service
