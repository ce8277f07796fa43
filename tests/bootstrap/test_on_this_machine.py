"""How the parts of this machine's driver are put together."""

import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contracts.volume_places import MIB, volume
from hansa.bootstrap.on_this_machine import OnThisMachine
from hansa.drivers import local
from hansa.drivers.local.volume_images import image_of
from hansa.settings import Settings


@pytest.mark.skipif(bool(local.no_images()), reason=f"no images here: {local.no_images()}")
async def test_a_volume_that_goes_is_let_go_by_the_disks_of_runs(tmp_path: Path) -> None:
    """Or a container would write to the plain folder below the next one of its name, without a limit."""
    async with AsyncExitStack() as parts:
        machine = OnThisMachine(Settings(), tmp_path, parts)
        places, one = machine.places(), volume("ns", size=16 * MIB)
        disks = machine._disks = local.Disks(tmp_path / "work", hard=True, placed=True)
        parts.callback(disks.close)
        for _ in range(2):
            await places.make(one)
            folder = Path(places.place("ns", one.name).source)
            image = image_of(folder)
            assert image is not None
            disks.volume(image, folder)
            assert os.path.ismount(folder)
            await places.remove("ns", one.name)
