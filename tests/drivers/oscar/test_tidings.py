"""What is kept of a store that another cluster tells of?"""

import json
from typing import Any

import pytest

from hansa.drivers.oscar import tidings
from hansa.drivers.oscar.calls import Answer, Question
from hansa.entrypoints.http.v1 import delegations
from hansa.services import PeerRefused

_SHARED = {"endpoint": "https://s3.example.org", "region": "eu-1", "verify": False, "access_key": "", "reach": "{}"}


_LENT = {"endpoint": "https://s3.example.org", "region": "eu-1", "access_key": "a" * 255, "secret_key": "s" * 64}


def _answer(provider: dict[str, Any]) -> Answer:
    asked = Question("cluster visby", "GET", "http://127.0.0.1/v1/delegations/job/storage", True, 1.0, 1000)
    return Answer(asked, 200, "application/json", json.dumps({"minio_provider": provider}).encode())


def test_a_store_that_two_clusters_share_can_be_told_to_a_third() -> None:
    """It lends no keys, and is passed on with all that says where it is."""
    told = json.loads(bytes(delegations._store(tidings.lent(_answer(_SHARED))).body))
    assert told == {"minio_provider": _SHARED}


def test_one_that_an_earlier_release_kept_can_be_told_as_well() -> None:
    kept = {"endpoint": "https://s3.example.org", "access_key": "", "reach": "{}"}
    told = json.loads(bytes(delegations._store(kept).body))
    assert told == {"minio_provider": kept | {"verify": True}}


@pytest.mark.parametrize("field", ["endpoint", "region", "access_key", "secret_key", "session_token"])
def test_a_store_with_a_field_no_store_has_is_not_taken(field: str) -> None:
    """It would be kept with each job, in memory too."""
    assert tidings.lent(_answer({**_LENT, "session_token": "t" * 4000}))["session_token"] == "t" * 4000
    with pytest.raises(PeerRefused):
        tidings.lent(_answer({**_LENT, field: f"http://{'x' * 9000}"}))


@pytest.mark.parametrize("field", ["endpoint", "region", "reach"])
def test_nor_is_one_that_two_clusters_share(field: str) -> None:
    with pytest.raises(PeerRefused):
        tidings.lent(_answer({**_SHARED, field: "x" * 17_000}))
