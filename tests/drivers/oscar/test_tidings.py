"""What is kept of a store that another cluster tells of?"""

import json

from hansa.drivers.oscar import tidings
from hansa.drivers.oscar.calls import Answer, Question
from hansa.entrypoints.http.v1 import delegations

_SHARED = {"endpoint": "https://s3.example.org", "region": "eu-1", "verify": False, "access_key": "", "reach": "{}"}


def test_a_store_that_two_clusters_share_can_be_told_to_a_third() -> None:
    """It lends no keys, and is passed on with all that says where it is."""
    asked = Question("cluster visby", "GET", "http://127.0.0.1/v1/delegations/job/storage", True, 1.0, 1000)
    answer = Answer(asked, 200, "application/json", json.dumps({"minio_provider": _SHARED}).encode())
    told = json.loads(bytes(delegations._store(tidings.lent(answer)).body))
    assert told == {"minio_provider": _SHARED}


def test_one_that_an_earlier_release_kept_can_be_told_as_well() -> None:
    kept = {"endpoint": "https://s3.example.org", "access_key": "", "reach": "{}"}
    told = json.loads(bytes(delegations._store(kept).body))
    assert told == {"minio_provider": kept | {"verify": True}}
