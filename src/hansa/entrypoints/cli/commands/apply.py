"""`hansa apply`: make the services of an FDL file exist as the file says."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hansa.entrypoints.cli import differences, exits, lending, options, profile_files, profiles, session
from hansa.entrypoints.cli.client import Manager
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

if TYPE_CHECKING:
    from hansa.services import fdl


def apply(
    file: Annotated[
        Path, typer.Option("--file", "-f", metavar="FDL", help="The FDL file; scripts are found beside it.")
    ],
    cluster: options.Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    send_credentials: options.SendCredentials = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds one service may take.")] = 400,
    as_json: options.Json = False,
) -> None:
    """Create or update every service of an FDL file."""
    screen = Screen(as_json=as_json)
    # Imported here, with the room it lives in, so that all other commands start without it.
    from hansa.services import fdl  # noqa: PLC0415

    parsed = fdl.parse(_read(file), lambda name: _read(file.parent / name))
    for warning in parsed.warnings:
        screen.warn(warning)
    with _Clusters.open(cluster, screen) as clusters:
        clusters.refuse_twins(parsed.definitions)
        order = _Order(clusters, screen, dry_run=dry_run, send_credentials=send_credentials, timeout=timeout)
        outcomes = [_apply_one(definition, order) for definition in parsed.definitions]
    screen.data([outcome.data() for outcome in outcomes])
    failures = [outcome.error for outcome in outcomes if outcome.error is not None]
    for error in failures:
        screen.failure(error)
    raise typer.Exit(exits.of_all(failures))


@dataclass(frozen=True, slots=True)
class _Order:
    """What the person asked for, for all services of the file."""

    clusters: "_Clusters"
    screen: Screen
    dry_run: bool
    send_credentials: bool
    timeout: float


@dataclass(slots=True)
class _Outcome:
    service: str
    cluster: str
    action: str
    owner: str = ""
    changes: list[differences.Change] = field(default_factory=list)
    error: errors.HansaError | None = None

    def line(self) -> str:
        return f"{self.action}  {self.service}  in {self.cluster}" + (f", owner {self.owner}" if self.owner else "")

    def data(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"service": self.service, "cluster": self.cluster, "action": self.action}
        if self.owner:
            shown["owner"] = self.owner
        if self.changes:
            shown["changes"] = [
                {"field": change.field, "before": change.before, "after": change.after} for change in self.changes
            ]
        if self.error is not None:
            shown["error"] = {"code": self.error.code, "message": self.error.message, "hint": self.error.hint}
        return shown


def _apply_one(definition: "fdl.Definition", order: _Order) -> _Outcome:
    outcome = _Outcome(definition.name, definition.cluster_id, "failed")
    screen = order.screen
    try:
        manager = order.clusters.of(definition.cluster_id)
        outcome.cluster = manager.name
        existing = _existing(manager, definition.name)
        service = definition.with_clusters(_described(definition, existing, manager, order)).service
        if existing is not None:
            outcome.changes = differences.between(existing, service)
        if order.dry_run:
            outcome.action = _plan(existing, outcome.changes)
        else:
            _send(service, existing, manager, order)
            outcome.action = "created" if existing is None else "updated"
            outcome.owner = _owner(existing or _existing_or_nothing(manager, definition.name))
    except errors.HansaError as error:
        error.message = f"{definition.name}: {error.message}"
        outcome.error = error
    screen.line(outcome.line())
    if order.dry_run:
        for change in outcome.changes:
            screen.line(f"    {change}")
    return outcome


def _send(service: dict[str, Any], existing: dict[str, Any] | None, manager: Manager, order: _Order) -> None:
    name, screen = service["name"], order.screen
    method = "POST" if existing is None else "PUT"
    with screen.waiting(f"{name} in {manager.name}"):
        answer = manager.call(method, "/system/services", body=service, timeout=order.timeout)
    for note in answer.headers.get_list("x-hansa-warning"):
        screen.warn(f"{name}: {note[:1000]}")
    if answer.status_code == 200 and answer.text.strip():  # how OSCAR reports members it could not update
        screen.warn(f"{name}: {answer.text.strip()[:1000]}")


def _described(
    definition: "fdl.Definition", existing: dict[str, Any] | None, manager: Manager, order: _Order
) -> dict[str, dict[str, Any]]:
    """The members' clusters that the file does not describe, from our profiles. A federation without a refresh token
    needs their credentials, which go only to a manager that keeps them encrypted, and only if the person agrees."""
    members = order.clusters.profiles_of(definition.undescribed_clusters)
    given = (existing or {}).get("clusters") or {}
    # What the service has from an earlier time stays there when it is sent back blank.
    kept = {} if order.send_credentials else {one.name: given[one.name] for one in members if _has(given, one)}
    needed = definition.federated and not definition.has_refresh_token and manager.keeps_secrets()
    going = [one for one in members if needed and one.user and one.name not in kept]
    lending.agree(going, definition.name, manager.name, order.screen, given=order.send_credentials, dry=order.dry_run)
    return {one.name: session.described(one, with_credentials=one in going) for one in members} | kept


def _has(given: dict[str, Any], member: profiles.Profile) -> bool:
    known = given.get(member.name)
    return isinstance(known, dict) and bool(known.get("auth_user")) and known.get("endpoint") == member.url


def _owner(service: dict[str, Any] | None) -> str:
    return str((service or {}).get("owner") or "")


def _existing_or_nothing(manager: Manager, name: str) -> dict[str, Any] | None:
    """It was made, so whatever goes wrong here is no failure."""
    try:
        return manager.service(name)
    except errors.HansaError:
        return None


def _plan(existing: dict[str, Any] | None, changes: list[differences.Change]) -> str:
    if existing is None:
        return "would create"
    return "would update" if changes else "unchanged"


def _existing(manager: Manager, name: str) -> dict[str, Any] | None:
    try:
        return manager.service(name)
    except errors.NotFound:
        return None


class _Clusters:
    """The clusters an FDL's services go to, each opened once."""

    def __init__(self, cluster: str | None, screen: Screen) -> None:
        self._path = profile_files.own(os.environ)
        self._known = profile_files.known(os.environ)
        self._cluster = cluster
        self._asked = session.asked_with(cluster, os.environ)
        self._screen = screen
        self._open: dict[profiles.Profile, Manager] = {}
        self._noted: set[str] = set()

    @classmethod
    @contextmanager
    def open(cls, cluster: str | None, screen: Screen) -> Iterator["_Clusters"]:
        clusters = cls(cluster, screen)
        try:
            yield clusters
        finally:
            for manager in clusters._open.values():
                manager.__exit__(None, None, None)

    def profiles_of(self, names: Iterable[str]) -> list[profiles.Profile]:
        return [self._known.known[name] for name in names if name in self._known.known]

    def refuse_twins(self, definitions: Iterable["fdl.Definition"]) -> None:
        """Where the file's clusters do not count, one service would overwrite the other."""
        if not self._asked:
            return
        names = Counter(definition.name for definition in definitions)
        for name in (name for name, count in names.items() if count > 1):
            raise errors.Invalid(
                f"{name} stands for several clusters, and {self._asked} sends all of them to one",
                hint=f"leave {self._asked} out, or give each a name of its own",
            )

    def of(self, cluster_id: str) -> Manager:
        """What the person said wins over the file; the file wins over the cluster in use."""
        if self._asked:
            profile = session.choose(self._known, self._cluster, os.environ)
            if profile.name != cluster_id:
                self._note(f"the file names {cluster_id}; going to {profile.name}, as you asked with {self._asked}")
        elif cluster_id in self._known.known:
            profile = session.choose(self._known, cluster_id, self._environment_for(cluster_id))
        else:
            profile = session.choose(self._known, None, os.environ)
            if cluster_id != profile.name:
                self._note(f"no profile is named {cluster_id}; its services go to {profile.name}")
        if profile not in self._open:
            self._open[profile] = session.connect(profile, self._path)
        return self._open[profile]

    def _environment_for(self, cluster_id: str) -> Mapping[str, str]:
        """Credentials of the environment belong to the cluster in use. They go to no other, and a profile's do not
        silently take their place."""
        given = next((name for name in ("HANSA_TOKEN", "HANSA_USER") if os.environ.get(name)), "")
        if given and cluster_id != self._known.current:
            raise errors.Invalid(
                f"the file names {cluster_id}, and {given} is for {self._known.current or 'no known cluster'}",
                hint=f"say where to go: -c {cluster_id}, or leave {given} out",
            )
        return os.environ

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._screen.note(text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise errors.Invalid(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise errors.Invalid(
            f"{path} is not UTF-8 text", hint="a script has to be text; put programs into a bucket"
        ) from None


def register(app: typer.Typer) -> None:
    app.command()(apply)
