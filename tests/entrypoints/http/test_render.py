"""What is shown of a service is what it is now: not the one of that name before, nor its volume as it was."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from hansa.entrypoints.http.render import ServiceViews
from hansa.services import Deployment, Record, Service
from hansa.services.service import VolumeRequest
from hansa.storage import Standing


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
    views = ServiceViews(kept, lambda record: idle, lambda namespace, name: Standing(), lambda name: "")  # type: ignore[arg-type]
    assert json.loads(views.of(kept.record, full=True))["token"] == "a" * 64
    kept.record = kept.made("bob", "b" * 64)
    shown = json.loads(views.of(kept.record, full=True, deployment=True))
    assert (shown["token"], shown["owner"], shown["deployment"]["state"]) == ("b" * 64, "bob", "unavailable")


def test_a_volume_is_shown_as_it_is_now() -> None:
    kept, standing = OneService(), Standing("Pending", "no class of that name", trouble=True)
    volume = VolumeRequest(name="models", mount_path="/data")
    kept.record = replace(kept.record, service=structs.replace(kept.record.service, volume=volume))
    idle = Deployment("unavailable", "", None, 0, 0, "unavailable")
    views = ServiceViews(kept, lambda record: idle, lambda namespace, name: standing, lambda name: "")  # type: ignore[arg-type]

    def shown() -> dict[str, object]:
        return dict(json.loads(views.of(kept.record, full=False))["volume_status"])

    assert shown() == {"enabled": True, "name": "models", "phase": "Pending", "error": "no class of that name"}
    standing = Standing()
    assert shown() == {"enabled": True, "name": "models", "phase": "Bound"}


def test_why_uploads_wait_is_for_the_owners_eyes() -> None:
    kept = OneService()
    idle = Deployment("unavailable", "", None, 0, 0, "unavailable")
    views = ServiceViews(kept, lambda record: idle, lambda namespace, name: Standing(), lambda name: "full")  # type: ignore[arg-type]
    shown = json.loads(views.of(kept.record, full=True, deployment=True))
    assert shown["uploads_status"] == {"waiting": True, "reason": "full"}
    assert shown["deployment"]["state"] == "unavailable"
    assert "uploads_status" not in json.loads(views.of(kept.record, full=False))
