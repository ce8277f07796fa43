"""What does a definition say about who may visit its process?"""

import pytest

from hansa.services import Service
from hansa.services.service import Expose


@pytest.mark.parametrize(
    ("visibility", "set_auth", "by_visibility", "as_in_oscar"),
    [
        ("public", False, True, True),
        ("public", True, False, False),
        ("restricted", False, False, True),
        ("private", False, False, True),
        ("private", True, False, False),
        ("", False, False, True),
        ("Public", False, False, True),  # a word we do not know hides it
    ],
)
def test_who_asks_nobody(visibility: str, set_auth: bool, by_visibility: bool, as_in_oscar: bool) -> None:
    service = Service(name="page", visibility=visibility, expose=Expose(api_port=(80,), set_auth=set_auth))
    assert service.asks_nobody() is by_visibility
    assert service.asks_nobody(private_too=True) is as_in_oscar
