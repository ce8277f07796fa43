"""May this service's image be fetched, and with whose credentials? What can be told from the definition alone. Pure.

A manager that fetches images itself asks the door of `drivers/egress` at every dial. In Kubernetes the nodes fetch
them, from their own network: there the name of a registry is held to the operator's rule, not where it leads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hansa.kernel.egress import HINT, BadTarget, Rule, Target, may_name, target_of
from hansa.services.errors import BadService

_EVERYBODYS = "docker.io"


@dataclass(frozen=True, slots=True)
class NodesPull:
    """The nodes of a cluster fetch images."""

    shared: bool = False  # several people's pods run in one namespace, and can name each other's Secrets
    secrets: tuple[str, ...] = ()  # those for registries that everybody may use


def check(image: str, allowed: Sequence[str]) -> None:
    if not image.strip() or len(image) > 1024 or any(c.isspace() for c in image.strip()):
        raise BadService("image is missing or not an image name", hint="for example ghcr.io/grycap/cowsay")
    if allowed and not any(part in image for part in allowed):
        raise BadService(f"image {image[:100]!r} is not allowed here", hint="allowed: " + ", ".join(allowed))


def check_registry(image: str, rule: Rule) -> None:
    """Raises `BadService` if the image names a registry that nodes are not to call for tenants."""
    try:
        target = registry(image)
    except BadTarget as error:
        raise BadService(f"image: {error.message}", hint="for example ghcr.io/grycap/cowsay") from error
    if why := may_name(target.host, target.port, rule):
        raise BadService(f"image: nothing is fetched from {target.host} here: {why}", hint=HINT)


def registry(image: str) -> Target:
    """Where an image is fetched. As container engines read it: what stands before the first slash is a host if it has
    a dot or a colon, or is `localhost`; any other name is one of Docker Hub's. Raises `BadTarget`."""
    first, slash, _ = image.strip().partition("/")
    named = bool(slash) and (any(mark in first for mark in ".:[") or first.lower() == "localhost")
    return target_of(first if named else _EVERYBODYS, scheme="https")


def check_secrets(named: Sequence[str], pull: NodesPull) -> None:
    """Raises `BadService` for a Secret that may be another person's."""
    foreign = [name for name in named if name not in pull.secrets] if pull.shared else []
    if foreign:
        raise BadService(
            f"image_pull_secrets: {foreign[0][:253]} cannot be named where several people share a namespace",
            hint="an administrator can list a Secret for everybody in kubernetes.pull_secrets, or let each user have a"
            " namespace of their own",
        )
