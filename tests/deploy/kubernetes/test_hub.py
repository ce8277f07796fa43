"""A hub by the chart: it answers, keeps what it knows through upgrades, and leaves behind what it says."""

from typing import Any

import pytest

from deploy.kubernetes import installation
from deploy.kubernetes.installation import Installation

pytestmark = pytest.mark.timeout(600)


async def tokens(release: Installation) -> list[str]:
    with await release.door(7070) as door:
        answer = door.get("/v1/cluster-tokens")
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()]


@pytest.mark.deep
async def test_what_a_hub_knows_outlives_upgrades_and_the_release(release: Installation, volume: str) -> None:
    values: dict[str, Any] = {"role": "hub", "persistence": installation.on(volume)}
    await release.upgrade(values)
    first = await release.pod()
    with await release.door(7070) as door:
        assert door.get("/ready").json() == {"ready": True, "missing": []}
        made = door.post("/v1/cluster-tokens", json={"cluster": "visby"}).json()
    assert made["hub"] == f"https://{release.fullname}-members.{release.namespace}.svc:7443"
    password = await release.password()

    await release.upgrade({**values, "settings": {"hub": {"heartbeat_every": 7.0}}})
    second = await release.pod()
    assert second.metadata.uid != first.metadata.uid
    assert await tokens(release) == [made["id"]]
    assert await release.password() == password

    await release.uninstall()
    assert await release.left() == {
        ("PersistentVolumeClaim", f"{release.fullname}-data"),
        ("Secret", release.fullname),
    }

    await release.upgrade(values)
    assert await tokens(release) == [made["id"]]
    assert await release.password() == password


async def test_without_a_volume_nothing_is_left(release: Installation) -> None:
    await release.upgrade({"role": "hub", "persistence": {"enabled": False, "keep": False}})
    assert await tokens(release) == []
    known = release.helm.run("get", "values", release.name, "--namespace", release.namespace, "--all", check=True)
    assert await release.password() not in known.stdout  # made by the chart, and in the Secret alone
    await release.uninstall()
    assert await release.left() == set()
