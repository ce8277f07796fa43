"""A hub is saved and brought back elsewhere by one command each, and its members find it as if nothing had happened."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from real.hub import ADMIN, Hub, StartHub
from real.simulated_manager import SimulatedManager

PASSPHRASE = "seven small boats"


def hansa(
    *words: str, hub: Hub | None = None, expect: int = 0, variables: Mapping[str, str] = MappingProxyType({})
) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
    env |= {"HANSA_HUB_PASSPHRASE": PASSPHRASE, "HANSA_PROFILES": "none.toml", **variables}
    if hub is not None:
        env |= {"HANSA_HUB": hub.url, "HANSA_HUB_USER": ADMIN, "HANSA_HUB_PASSWORD": hub.password}
    program = str(Path(sys.executable).with_name("hansa"))
    done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == expect, done.stderr + done.stdout
    return done.stdout or done.stderr


async def test_restored_into_an_empty_place(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    async with SimulatedManager("visby", [hub.members_url]) as manager:
        await manager.join(hub.token())
        heard = await manager.beat(totals={"cpu": 4000})
        assert heard is not None
        hub.admin.post("/v1/clusters/visby/cordon")
        told = await manager.desired()
        assert told is not None
        file = tmp_path / "hub.backup"
        assert json.loads(hansa("hub", "backup", str(file), "--json", hub=hub))["bytes"] == file.stat().st_size
        assert file.stat().st_mode & 0o077 == 0
        hub.admin.post("/v1/clusters/visby/drain")  # after the backup: a restored hub does not know of it
        later = await manager.desired(told.generation, 10)
        assert later is not None
        assert later.drain
        hub.kill()

        place = tmp_path / "elsewhere"
        where = {"HANSA_DATA": str(place)}
        said = hansa("hub", "restore", str(file), expect=1, variables={**where, "HANSA_HUB_PASSPHRASE": "a wrong one"})
        assert "passphrase" in said
        hansa("hub", "restore", str(file), variables=where)
        assert "already" in hansa("hub", "restore", str(file), expect=5, variables=where)
        # the standby takes the place of the lost hub: the same address, as a load balancer or DNS would have it
        hub.settings = {**hub.settings, "data": str(place)}
        hub.start()
        heard = await manager.beat(totals={"cpu": 5000})  # its certificate is as good as before
        assert heard is not None
        assert heard.desired > later.generation  # what the backup says is in force, and members hear of it
        again = await manager.desired(later.generation, 10)
        assert again is not None
        assert (again.cordoned, again.drain, again.whole) == (True, False, True)
        assert hub.state("visby") == "ready"


def test_a_standby_keeps_fresh_files(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    folder = tmp_path / "standby"
    words = ("hub", "follow", str(folder), "--every", "1", "--keep", "2", "--times", "3")
    said = hansa(*words, hub=hub)
    assert said.count("bytes in") == 3
    assert len(list(folder.iterdir())) == 2
    restored = hansa("hub", "restore", str(folder), "--json", variables={"HANSA_DATA": str(tmp_path / "new")})
    assert json.loads(restored)["rows"] > 0
