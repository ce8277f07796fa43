"""How much may one user have? Limits as exact integers, their defaults, and changes an admin asks for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from hansa.kernel import quantities
from hansa.kernel.errors import Invalid
from hansa.kernel.quota import QuotaSettings

_UNITS = ("Ti", "Gi", "Mi", "Ki")


class BadQuota(Invalid):
    """A quota is not valid."""

    code = "quota.invalid"


@dataclass(frozen=True, slots=True)
class Limits:
    cpu: int  # millicores
    memory: int  # bytes, as everything below that is not a number of things
    ephemeral_storage: int
    gpu: int
    volumes: int
    disk: int
    max_disk_per_volume: int
    min_disk_per_volume: int
    buckets: int
    storage_per_bucket: int
    services: int
    definitions: int
    shared_definitions: int

    @classmethod
    def of(cls, settings: QuotaSettings) -> "Limits":
        return cls(
            cpu=quantities.millicores(settings.cpu),
            memory=quantities.size(settings.memory),
            ephemeral_storage=quantities.size(settings.ephemeral_storage, what="ephemeral storage"),
            gpu=settings.gpu,
            volumes=settings.volumes,
            disk=quantities.size(settings.disk, what="disk"),
            max_disk_per_volume=quantities.size(settings.max_disk_per_volume, what="max_disk_per_volume"),
            min_disk_per_volume=quantities.size(settings.min_disk_per_volume, what="min_disk_per_volume"),
            buckets=settings.buckets,
            storage_per_bucket=quantities.size(settings.storage_per_bucket, what="storage_per_bucket"),
            services=settings.services,
            definitions=quantities.size(settings.definitions, what="definitions"),
            shared_definitions=quantities.size(settings.shared_definitions, what="shared_definitions"),
        )

    def changed(self, change: Mapping[str, int]) -> "Limits":
        """Fields we do not know (a newer version wrote them) are left aside."""
        return replace(self, **{name: value for name, value in change.items() if name in asdict(self)})

    def difference(self, default: "Limits") -> dict[str, int]:
        usual = asdict(default)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """What an admin wants changed, as quantities in words; "" leaves a limit as it is."""

    cpu: str = ""
    memory: str = ""
    ephemeral_storage: str = ""
    gpu: str = ""
    volumes: str = ""
    disk: str = ""
    max_disk_per_volume: str = ""
    min_disk_per_volume: str = ""
    buckets: str = ""
    storage_per_bucket: str = ""

    def applied_to(self, limits: Limits) -> Limits:
        given = {name: text.strip() for name, text in asdict(self).items() if text.strip()}
        if not set(given) - {"gpu"}:
            raise BadQuota(
                "cpu, memory, ephemeral_storage, volumes or minio must be provided",
                hint='for example {"cpu":"2","memory":"4Gi"}',
            )
        after = limits.changed({name: _amount(name, text) for name, text in given.items()})
        if after.min_disk_per_volume > after.max_disk_per_volume:
            raise BadQuota("min_disk_per_volume is more than max_disk_per_volume", hint="give both in the same request")
        return after


def _amount(name: str, text: str) -> int:
    if name == "cpu":
        return quantities.millicores(text)
    if name in ("gpu", "volumes", "buckets"):
        value = quantities.parse(text, what=name)
        if value != value.to_integral_value():
            raise BadQuota(f"{name} {text[:40]!r} is not a whole number")
        return int(value)
    return quantities.size(text, what=name)


def exact_size(count: int) -> str:
    """Bytes as a quantity that means exactly the same: 7Gi, 1536Mi, 1000."""
    for power, unit in zip((40, 30, 20, 10), _UNITS, strict=True):
        if count and count % 2**power == 0:
            return f"{count >> power}{unit}"
    return str(count)
