"""Which of our credentials go along with a federated service, and does the person agree?

A coordinator without a refresh token of the owner's signs in at its members with users and passwords. `apply` and
`federation add` know those of the profiles. Whoever has them can do all that these users can, so each is named, and
none goes unless the person said so.
"""

import sys
from collections.abc import Sequence

import typer

from hansa.entrypoints.cli.profiles import Profile
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

_OTHERWISE = "give the service a refresh token of yours: environment.secrets.refresh_token"


class NotSent(errors.Invalid):
    """Credentials would have to be sent, and nobody agreed to it."""

    code = "cli.credentials-not-sent"


def agree(going: Sequence[Profile], service: str, target: str, screen: Screen, *, given: bool, dry: bool) -> None:
    """Returns if they may go to `target`; `given` is what the person said beforehand. A dry run only tells."""
    if not going:
        return
    named = " and ".join(f"user {one.user} of {one.name}" for one in going)
    if dry:
        screen.note(f"{service}: the password of {named} would go along to {target}")
    elif given:
        screen.note(f"{service}: the password of {named} goes along; {target} keeps it encrypted")
    elif not sys.stdin.isatty():
        raise NotSent(
            f"the password of {named} would have to go along to {target}, and nobody can be asked",
            hint=f"agree with --send-credentials, or {_OTHERWISE}",
        )
    elif not typer.confirm(f"{service}: send the password of {named} along? {target} keeps it encrypted", err=True):
        raise NotSent(f"the password of {named} was not sent", hint=_OTHERWISE)
