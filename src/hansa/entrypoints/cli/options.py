"""The options many commands share, so that they read the same everywhere."""

import os
from typing import Annotated

import typer

from hansa.entrypoints.cli import profiles
from hansa.kernel.errors import HansaError


def _known_clusters(incomplete: str) -> list[str]:
    try:
        return [name for name in profiles.load(profiles.place(os.environ)).known if name.startswith(incomplete)]
    except HansaError:
        return []  # a broken file must not break the shell's completion


Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", "-c", metavar="NAME", autocompletion=_known_clusters, show_default=False,
        help="The cluster to speak to; else HANSA_URL, HANSA_CLUSTER or the one in use.",
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Secrets = Annotated[bool, typer.Option("--secrets", help="Show tokens, keys and passwords.")]
ServiceName = Annotated[str, typer.Argument(metavar="SERVICE", help="The service's name.")]
BucketName = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket's name.")]
KnownCluster = Annotated[str, typer.Argument(metavar="NAME", help="A known cluster.", autocompletion=_known_clusters)]
