"""The options many commands share, so that they read the same everywhere."""

import os
from typing import Annotated

import typer

from hansa.entrypoints.cli import profile_files
from hansa.kernel.errors import HansaError


def _known(incomplete: str, *roles: str) -> list[str]:
    try:
        found = profile_files.known(os.environ).known.values()
        return [one.name for one in found if one.name.startswith(incomplete) and one.role in roles]
    except HansaError:
        return []  # a broken file must not break the shell's completion


def _known_clusters(incomplete: str) -> list[str]:
    return _known(incomplete, "manager")


def _known_hubs(incomplete: str) -> list[str]:
    return _known(incomplete, "hub")


def _all_known(incomplete: str) -> list[str]:
    return _known(incomplete, "manager", "hub")


Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", "-c", metavar="NAME", autocompletion=_known_clusters, show_default=False,
        help="The cluster to speak to; else HANSA_URL, HANSA_CLUSTER or the one in use.",
    ),
]  # fmt: skip
Hub = Annotated[
    str | None,
    typer.Option(
        "--hub", metavar="NAME|URL", autocompletion=_known_hubs, show_default=False,
        help="The hub to speak to; else HANSA_HUB or the one in use.",
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
SendCredentials = Annotated[
    bool,
    typer.Option(
        "--send-credentials",
        help="Members are reached with the users and passwords of your profiles: send them along without asking.",
    ),
]
Secrets = Annotated[bool, typer.Option("--secrets", help="Show tokens, keys and passwords.")]
ServiceName = Annotated[str, typer.Argument(metavar="SERVICE", help="The service's name.")]
BucketName = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket's name.")]
Member = Annotated[str, typer.Argument(metavar="CLUSTER", help="The id of a cluster of the federation.")]
Known = Annotated[str, typer.Argument(metavar="NAME", help="A known cluster or hub.", autocompletion=_all_known)]
