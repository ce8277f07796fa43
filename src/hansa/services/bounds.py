"""How much may stand in a definition? Each list and each text has a bound: a definition is kept in memory, told to
other clusters, and becomes variables, labels and objects elsewhere, which have bounds of their own. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain

from hansa.services.errors import BadService
from hansa.services.service import Service, StorageIO

LARGEST = 4 * 2**20  # bytes of a definition as it is sent; a script of a megabyte fits in, whatever JSON makes of it
MOST = 256  # entries in any list or map of a definition
LONGEST = 1024  # characters of a text that names something
_LONGEST_SETTING = 16 * 1024  # characters of a key, a password, a header
_MOST_SETTINGS = 64  # of one store, or one member
_LONGEST_VARIABLE = 128 * 1024 - 2  # bytes of name and value: the kernel takes no longer ones
_LARGEST_ENVIRONMENT = 256 * 1024  # bytes
_LARGEST_ANNOTATIONS = 256 * 1024  # bytes; as many as Kubernetes takes


def check(service: Service) -> None:
    """Raises `BadService`, naming the field."""
    for field, given, most in _lists(service):
        if len(given) > most:
            raise BadService(f"{field} has more than {most} entries", hint="leave some out")
    for field, texts, longest in _texts(service):
        if any(len(text) > longest for text in texts):
            raise BadService(f"{field} has a text of more than {longest} characters", hint="shorten it")
    _check_environment(service)
    if _size(service.annotations) > _LARGEST_ANNOTATIONS:
        raise BadService(f"annotations are larger than {_LARGEST_ANNOTATIONS} bytes", hint="shorten them")


def _lists(service: Service) -> Iterator[tuple[str, Sized, int]]:
    for field in ("input", "output", "allowed_users", "annotations", "labels", "clusters", "image_pull_secrets"):
        yield field, getattr(service, field), MOST
    yield "environment", service.environment.variables, MOST
    yield "environment", service.environment.secrets, MOST
    for field, io in _folders(service):
        yield f"{field}.suffix", io.suffix, MOST
        yield f"{field}.prefix", io.prefix, MOST
    yield "expose.api_port", service.expose.api_port, MOST
    stores = [given for by_id in service.storage_providers.values() for given in by_id.values()]
    yield "storage_providers", stores, MOST
    yield "storage_providers", service.storage_providers, MOST
    for given in stores:
        yield "a store in storage_providers", given, _MOST_SETTINGS
    if (federation := service.federation) is not None:
        yield "federation.members", federation.members, MOST
        yield "federation.weights", federation.weights or (), _MOST_SETTINGS
        for member in federation.members:
            yield "headers of a federation member", member.headers or (), _MOST_SETTINGS


def _texts(service: Service) -> Iterator[tuple[str, Iterable[str], int]]:
    """Names and settings; scripts and the values of variables and annotations are weighed otherwise."""
    for field in ("cluster_id", "vo", "interlink_node_name", "isolation_level", "log_level"):
        yield field, (getattr(service, field),), LONGEST
    for field in ("allowed_users", "image_pull_secrets", "annotations"):
        yield field, getattr(service, field), LONGEST
    yield "labels", chain(service.labels, service.labels.values()), LONGEST
    for field, io in _folders(service):
        yield f"{field}.storage_provider", (io.storage_provider,), LONGEST
        yield field, (io.options, *io.suffix, *io.prefix), LONGEST
    for ident, one in service.clusters.items():
        yield "clusters", (ident, one.endpoint, one.auth_user), LONGEST
        yield "clusters", (one.auth_password,), _LONGEST_SETTING
    for kind, by_id in service.storage_providers.items():
        yield "storage_providers", (kind, *by_id), LONGEST
        for given in by_id.values():
            texts = (str(one) for one in chain(given, given.values()))
            yield "storage_providers", texts, _LONGEST_SETTING
    for member in service.federation.members if service.federation else ():
        headers = member.headers or {}
        yield "headers of a federation member", chain(headers, headers.values()), _LONGEST_SETTING


def _folders(service: Service) -> Iterator[tuple[str, StorageIO]]:
    yield from (("input", io) for io in service.input)
    yield from (("output", io) for io in service.output)
    yield "mount", service.mount


def _check_environment(service: Service) -> None:
    given = service.environment
    for name, value in chain(given.variables.items(), given.secrets.items()):
        if len(name.encode()) + len(value.encode()) > _LONGEST_VARIABLE:
            raise BadService(
                f"variable {name[:60]} is longer than {_LONGEST_VARIABLE} bytes",
                hint="put it into a bucket or volume and let the script read it",
            )
    if _size(given.variables) + _size(given.secrets) > _LARGEST_ENVIRONMENT:
        raise BadService(
            f"environment is larger than {_LARGEST_ENVIRONMENT} bytes", hint="put large values into a bucket or volume"
        )


def _size(texts: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in texts.items())
