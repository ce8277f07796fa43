"""How much room is there on the disk of the data folder, for runs and volumes together?

Images take room only as they fill, so their sizes are promises. What is promised together must be there: what is free
now, and what images took already, but for a reserve that is the manager's own.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from hansa.drivers.local.disks import Disks
from hansa.kernel import quantities
from hansa.settings import SMALLEST_DISK, BadSetting, JobSettings

_SOON = 1.0  # seconds


def per_run(jobs: JobSettings, most: int) -> int:
    """Bytes that each run has, on a disk with `most` for all of them: what the operator said, or the default, but half
    of that disk at most. Raises `BadSetting` if the operator said more than there is."""
    asked = quantities.size(jobs.disk_per_run, what="disk")
    if "disk_per_run" not in jobs.model_fields_set:
        return max(SMALLEST_DISK, min(asked, most // 2))
    if asked > most:
        show = quantities.show_size
        raise BadSetting(
            f"setting jobs.disk_per_run: {show(asked)} for each run, and the disk has {show(most)} for all of them",
            hint="choose less, or have data on a larger disk; jobs.disk and jobs.disk_reserve count as well",
        )
    return asked


def shortage(jobs: JobSettings, most: int) -> str:
    """Why no run could ever begin on a disk with `most` for all of them, or ""."""
    if per_run(jobs, most) <= most:
        return ""
    reserve = f"; jobs.disk_reserve keeps {jobs.disk_reserve} of it for the manager" if jobs.disk_reserve else ""
    return f"the disk has {quantities.show_size(most)} for runs, too little for one of them{reserve}"


class Space:
    def __init__(self, data: Path, jobs: JobSettings, volumes: Callable[[], int] = lambda: 0) -> None:
        """`volumes` tells what the images of volumes took already; each is promised its whole size by somebody else."""
        self._data = data
        self._volumes = volumes
        self._limit = quantities.size(jobs.disk, what="disk") if jobs.disk else None
        self._seen, self._due = 0, 0.0
        self._reserve = quantities.size(jobs.disk_reserve or "0", what="disk")

    @property
    def most(self) -> int:
        """What the disk could offer if nothing else were on it."""
        facts = os.statvfs(self._existing)
        return self._at_most(facts.f_blocks * facts.f_frsize - self._reserve)

    def room(self, disks: Disks | None) -> int:
        """What it offers now, with what runs and volumes hold already."""
        facts = os.statvfs(self._existing)
        taken = self._taken_by_volumes() + (disks.taken() if disks is not None else 0)
        return self._at_most(facts.f_bavail * facts.f_frsize + taken - self._reserve)

    def _at_most(self, size: int) -> int:
        return max(0, size if self._limit is None else min(size, self._limit))

    def _taken_by_volumes(self) -> int:
        """There may be thousands of them, and each job that starts asks."""
        now = time.monotonic()
        if now >= self._due:
            self._seen, self._due = self._volumes(), now + _SOON
        return self._seen

    @property
    def _existing(self) -> Path:
        return next(path for path in (self._data, *self._data.parents) if path.exists())
