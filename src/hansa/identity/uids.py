"""Which uid does a person have? A person is an issuer and a subject; owners, lists of users and keys hold a uid.

The people of one issuer, the home issuer, have their plain subject, as OSCAR's clients expect. Everybody else has a
qualified uid, made of a digest of issuer and subject, so that no issuer can name somebody of another. A plain subject
never has the form of a qualified uid: who has such a subject gets a qualified uid too.
"""

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hansa.identity.errors import HomeContradicted

# First the digest: names made of a uid's beginning (namespaces, buckets of one user) stay apart.
_FORM = re.compile(r"[0-9a-f]{40}@other-issuer", re.IGNORECASE)
HOME_MARK = "home-issuer:"  # how what a manager tells its peers of the home issuer begins
_REMEDY = "docs/guides/sign-in.md, Who is who, tells what to do"


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """Somebody on record."""

    issuer: str
    subject: str
    uid: str


def qualified(issuer: str, subject: str) -> str:
    """The uid of somebody whose issuer is not the home issuer; the same on every cluster."""
    digest = hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()  # a subject has no line break
    return f"{digest[:40]}@other-issuer"


def _by_rule(home: str, issuer: str, subject: str) -> str:
    return subject if issuer == home and not _FORM.fullmatch(subject) else qualified(issuer, subject)


class Uids:
    """The uids of everybody at one manager or hub: who is on record keeps theirs, for the others there is the rule."""

    def __init__(self, home: str, on_record: Iterable[KnownPerson] = ()) -> None:
        """`home` is "" where nobody has a plain subject."""
        self.home = home
        self._kept = {
            (one.issuer, one.subject): one.uid
            for one in on_record
            if one.uid != _by_rule(home, one.issuer, one.subject)
        }
        self._taken = frozenset(self._kept.values())

    @property
    def home_mark(self) -> str:
        """Equal at managers that mean the same people by plain subjects; strangers do not learn the issuer from it."""
        return HOME_MARK + hashlib.sha256(self.home.encode()).hexdigest()[:16] if self.home else ""

    def of(self, issuer: str, subject: str) -> str:
        kept = self._kept.get((issuer, subject))
        if kept is not None:
            return kept
        uid = _by_rule(self.home, issuer, subject)
        # a person of another issuer had this plain subject before the two were told apart
        return qualified(issuer, subject) if uid in self._taken else uid


def choose_home(recorded: str, asked: str, trusted: Collection[str]) -> str:
    """The home issuer: the recorded one for ever, else the one asked for, else the first trusted one.

    Raises `HomeContradicted` where the settings say something else: plain subjects that change hands would give one
    person's things to another.
    """
    if recorded and asked and asked != recorded:
        raise HomeContradicted(
            f"oidc.home is {asked}, but the plain subjects here are those of {recorded}", hint=_REMEDY
        )
    if recorded and not asked and trusted and recorded not in trusted:
        raise HomeContradicted(
            f"the plain subjects here are those of {recorded}, which oidc.issuers does not name", hint=_REMEDY
        )
    if not recorded and asked and asked not in trusted:
        raise HomeContradicted(f"oidc.home is {asked}, which oidc.issuers does not name", hint=_REMEDY)
    return recorded or asked or next(iter(trusted), "")
