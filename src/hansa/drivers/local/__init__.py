"""How do we run services on this very machine? Scripts in sandboxes (`sandbox`, `launcher`), behind the three hosts
of `hansa.services.ports`: jobs (`job_host`), synchronous calls (`sync_host`), long-lived services (`exposed_host`).
"""

from hansa.drivers.local.background import Background
from hansa.drivers.local.disks import Disks
from hansa.drivers.local.disks import trouble as no_images
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.exposed_host import LocalExposedHost
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.node import LocalNode
from hansa.drivers.local.podman import PodmanRuntime
from hansa.drivers.local.runtime import HostRuntime, Runtime
from hansa.drivers.local.sandbox import Level, probe
from hansa.drivers.local.space import Space, per_run, shortage
from hansa.drivers.local.staging import OwnStore
from hansa.drivers.local.sync_host import LocalSyncHost
from hansa.drivers.local.volume_images import VolumeImages

__all__ = [
    "Background",
    "Disks",
    "Engine",
    "HostRuntime",
    "Level",
    "LocalExposedHost",
    "LocalJobHost",
    "LocalNode",
    "LocalSyncHost",
    "LogBook",
    "OwnStore",
    "PodmanRuntime",
    "Runtime",
    "Space",
    "VolumeImages",
    "no_images",
    "per_run",
    "probe",
    "shortage",
]
