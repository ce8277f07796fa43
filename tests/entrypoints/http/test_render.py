"""A service made again under an old name shows nothing of the one before."""

import json
from collections.abc import Mapping, Sequence

from hansa.entrypoints.http.render import ServiceViews
from hansa.services import Deployment, Record, Service


class OneService:
    """Holds what a view needs of the store."""

    def __init__(self) -> None:
        self.record = self.made("alice", "a" * 64)

    def made(self, owner: str, token: str) -> Record:
        service = Service(name="gray", image="debian", script="true", owner=owner, token=token)
        return Record(service, 1, "ready", False, (), 0.0, 0.0)

    def get(self, name: str) -> Record | None:
        return self.record

    def all(self) -> Sequence[Record]:
        return [self.record]

    def secrets(self, name: str) -> Mapping[str, str]:
        return {}


def test_a_service_deleted_and_made_again_is_not_the_old_one() -> None:
    kept = OneService()
    idle = Deployment("unavailable", "", None, 0, 0, "unavailable")
    views = ServiceViews(kept, lambda record: idle)  # type: ignore[arg-type]
    assert json.loads(views.of(kept.record, full=True))["token"] == "a" * 64
    kept.record = kept.made("bob", "b" * 64)
    shown = json.loads(views.of(kept.record, full=True, deployment=True))
    assert (shown["token"], shown["owner"], shown["deployment"]["state"]) == ("b" * 64, "bob", "unavailable")
