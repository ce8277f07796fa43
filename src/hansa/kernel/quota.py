"""What may one user have, unless an admin says otherwise? The settings `quotas`."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from hansa.kernel import quantities


def _amount(text: str) -> str:
    """A quantity that can be read; what it is good for is decided where it is used."""
    if text:
        try:
            quantities.parse(text)
        except quantities.BadQuantity as error:
            raise ValueError(f"{error.message}; {error.hint}") from None
    return text


def _as_text(given: object, info: ValidationInfo) -> object:
    """A file may give a plain number; JSON comes from programs, which write a quantity as a text."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return str(given) if number and info.mode == "python" else given


Amount = Annotated[str, BeforeValidator(_as_text), AfterValidator(_amount)]


class QuotaSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cpu: Amount = "2"
    """CPU that all that runs for one user may hold together: jobs, calls of `/run`, warm workers and exposed services.
    More waits its turn; what is larger than the whole quota does not begin."""
    memory: Amount = "2Gi"
    """Memory that all that runs for one user may hold together, in the same way."""
    ephemeral_storage: Amount = "10Gi"
    """Disk that one user's runs may hold together, volumes left aside; each holds `jobs.disk_per_run`, or what its
    service asks for. More waits its turn."""
    gpu: int = 0
    """GPUs of one user; shown to clients, for a local cluster gives none out."""
    volumes: int = Field(5, ge=0)
    """How many volumes one user may have."""
    disk: Amount = "7Gi"
    """What one user's volumes may hold together."""
    max_disk_per_volume: Amount = "5Gi"
    """The largest volume one may ask for."""
    min_disk_per_volume: Amount = "200Mi"
    """The smallest volume one may ask for."""
    buckets: int = Field(5, ge=0)
    """How many buckets one user may have."""
    storage_per_bucket: Amount = "5Gi"
    """What one bucket of a user may hold."""
    services: int = Field(200, ge=0)
    """How many services one user may have, replicas that other clusters made for them included."""
    definitions: Amount = "16Mi"
    """What the definitions of one user's services may hold together; scripts are the most of it."""
    shared_definitions: Amount = "1Mi"
    """What those of them may hold together that are not private: they stand, whole, in the lists of others."""
    enforce: bool = True
    """Whether a user's quota is enforced; the admin is never limited."""
