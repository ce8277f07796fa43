"""How does a service stand with its credentials, in words for its owner? Never shows a token. Pure."""

from dataclasses import dataclass
from typing import Literal

from hansa.kernel.errors import HansaError
from hansa.services.credentials.borrowing import Heard
from hansa.services.credentials.lineage import Lineage, State

DAY = 86_400.0
_REPLACE = "give the service a new environment.secrets.refresh_token"


@dataclass(frozen=True, slots=True)
class Standing:
    state: State
    since: float | None
    sentence: str
    hint: str
    source: Literal["own", "coordinator", "none"]  # who exchanges the refresh token
    issuer: str = ""
    rotates: bool | None = None  # whether the issuer was seen to replace the refresh token
    obtained: float | None = None  # when the refresh token in use came
    renewed: float | None = None  # when it was last exchanged
    rotation_due: float | None = None
    access_expires: float | None = None  # of the access token at hand


def of_line(line: Lineage, now: float, rotation_days: float, access_expires: float | None) -> Standing:
    sentence, hint = _words(line, now, rotation_days)
    due = None if line.spent else max(line.obtained, line.renewed) + rotation_days * DAY
    return Standing(
        state=line.state,
        since=line.since,
        sentence=sentence,
        hint=hint,
        source="own",
        issuer=line.issuer,
        rotates=line.rotates,
        obtained=line.obtained,
        renewed=line.renewed or None,
        rotation_due=due,
        access_expires=access_expires,
    )


def is_due(line: Lineage, now: float, rotation_days: float) -> bool:
    """Whether the token was left alone for longer than the policy allows."""
    return not line.spent and now >= max(line.obtained, line.renewed) + rotation_days * DAY


def _words(line: Lineage, now: float, rotation_days: float) -> tuple[str, str]:
    match line.state:
        case "expired-or-revoked":
            return f"the refresh token is of no use any more: {line.reason}", _REPLACE
        case "issuer-unreachable":
            return f"the issuer does not answer: {line.reason}", "it is asked again by itself"
        case "misconfigured":
            return line.reason, "see oidc.issuers in the manager's settings"
    days = (now - line.obtained) / DAY
    if line.rotates is False and days > rotation_days:
        text = f"the refresh token works, and is {days:.0f} days old; its issuer does not replace it"
        return text, _REPLACE
    if not line.renewed:
        return "the refresh token was not used yet", ""
    return "the refresh token works", ""


def of_replica(coordinator: str, heard: Heard | None, access_expires: float | None) -> Standing:
    if heard is None or heard.state == "ok":
        text = f"access tokens come from the coordinator {coordinator}"
        return Standing("ok", heard.since if heard else None, text, "", "coordinator", access_expires=access_expires)
    hint = "see the credentials of the coordinator's service"
    return Standing(heard.state, heard.since, heard.reason, hint, "coordinator", access_expires=access_expires)


def of_error(error: HansaError) -> Standing:
    return Standing("misconfigured", None, error.message, error.hint, "own")


def of_none(revoked: tuple[float, str] | None) -> Standing:
    """`revoked`: when its token was revoked, and what the issuer said."""
    if revoked is None:
        return Standing("none", None, "the service has no refresh token", "", "none")
    at, told = revoked
    return Standing("none", at, f"the refresh token was revoked and removed; {told}", _REPLACE, "none")
