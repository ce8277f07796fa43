"""Does a service that cannot be finished keep others from being finished?"""

from types import SimpleNamespace
from typing import Any, cast

import structlog

from hansa.services import creation
from hansa.services.complaints import Complaints


async def test_what_one_service_raises_is_said_once_and_harms_no_other() -> None:
    looked_at: list[str] = []

    def get(name: str) -> None:
        looked_at.append(name)
        if name == "poison":
            raise RuntimeError("nobody thought of this")

    records = [SimpleNamespace(service=SimpleNamespace(name=name), phase="deleting") for name in ("poison", "gray")]
    room = SimpleNamespace(records=SimpleNamespace(all=lambda: records, get=get), complaints=Complaints())
    with structlog.testing.capture_logs() as said:
        for _ in range(2):
            await creation.recover(cast(Any, room))
    assert looked_at == ["poison", "gray"] * 2
    assert [(one["event"], one["service"]) for one in said] == [("not finished yet", "poison")]
