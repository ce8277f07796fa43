"""Does every definition that may be on record become a plan, or an error that says what is wrong with it?"""

from typing import Any

import pytest

from contracts.orders import order
from hansa.drivers.runs import plans
from hansa.services.service import StorageIO


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("webdav", {}),
        ("webdav", {"hostname": None}),
        ("webdav", {"hostname": "  "}),
        ("webdav", {"hostname": "ftp://dav.example.org"}),
        ("minio", {"endpoint": "dav.example.org"}),
        ("s3", {"endpoint": "https://s3.example.org:port"}),
    ],
)
def test_a_store_that_nobody_can_call_is_named(kind: str, settings: dict[str, Any]) -> None:
    """Definitions that came before their addresses were checked are still there."""
    output = (StorageIO(storage_provider=f"{kind}.far", path="bucket/out"),)
    made = order("true", output=output, storage_providers={kind: {"far": settings}})
    with pytest.raises(plans.UnknownProvider, match=f"{kind}.far: the address of the store"):
        plans.plan(made, None)
