"""`hansa apply`: make the services of an FDL file exist as the file says."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hansa.entrypoints.cli import differences, exits, options, profiles, session
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
        outcomes = [_apply_one(definition, clusters, dry_run, timeout, screen) for definition in parsed.definitions]
    screen.data([outcome.data() for outcome in outcomes])
    failures = [outcome.error for outcome in outcomes if outcome.error is not None]
    for error in failures:
        screen.failure(error)
    raise typer.Exit(exits.of_all(failures))


@dataclass(slots=True)
class _Outcome:
    service: str
    cluster: str
    action: str
    changes: list[differences.Change] = field(default_factory=list)
    error: errors.HansaError | None = None

    def data(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"service": self.service, "cluster": self.cluster, "action": self.action}
        if self.changes:
            shown["changes"] = [
                {"field": change.field, "before": change.before, "after": change.after} for change in self.changes
            ]
        if self.error is not None:
            shown["error"] = {"code": self.error.code, "message": self.error.message, "hint": self.error.hint}
        return shown


def _apply_one(
    definition: "fdl.Definition", clusters: "_Clusters", dry_run: bool, timeout: float, screen: Screen
) -> _Outcome:
    outcome = _Outcome(definition.name, definition.cluster_id, "failed")
    try:
        manager = clusters.of(definition.cluster_id)
        outcome.cluster = manager.name
        service = definition.with_clusters(clusters.described(definition, manager)).service
        existing = _existing(manager, definition.name)
        if existing is not None:
            outcome.changes = differences.between(existing, service)
        if dry_run:
            outcome.action = _plan(existing, outcome.changes)
        else:
            method = "POST" if existing is None else "PUT"
            with screen.waiting(f"{definition.name} in {manager.name}"):
                answer = manager.call(method, "/system/services", body=service, timeout=timeout)
            outcome.action = "created" if existing is None else "updated"
            for note in answer.headers.get_list("x-hansa-warning"):
                screen.warn(f"{definition.name}: {note[:1000]}")
            if answer.status_code == 200 and answer.text.strip():  # how OSCAR reports members it could not update
                screen.warn(f"{definition.name}: {answer.text.strip()[:1000]}")
    except errors.HansaError as error:
        error.message = f"{definition.name}: {error.message}"
        outcome.error = error
    screen.line(f"{outcome.action}  {outcome.service}  in {outcome.cluster}")
    if dry_run:
        for change in outcome.changes:
            screen.line(f"    {change}")
    return outcome


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
    """The clusters an FDL names, each opened once. An id without a profile means the selected cluster."""

    def __init__(self, cluster: str | None, screen: Screen) -> None:
        self._path = profiles.place(os.environ)
        self._known = profiles.load(self._path)
        self._cluster = cluster
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

    def described(self, definition: "fdl.Definition", manager: Manager) -> dict[str, dict[str, Any]]:
        """The clusters we have profiles of. A federation without a refresh token needs their credentials, which go
        only to a manager that keeps them encrypted."""
        needed = definition.federated and not definition.has_refresh_token and manager.keeps_secrets()
        if needed:
            self._note(
                f"{definition.name}: credentials of its members' clusters go along; {manager.name} keeps them encrypted"
            )
        return {
            name: session.described(profile, with_credentials=needed) for name, profile in self._known.known.items()
        }

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._screen.note(text)

    def of(self, cluster_id: str) -> Manager:
        if cluster_id in self._known.known:
            # The selected cluster may have credentials from the environment; the others never do.
            selected = self._cluster or os.environ.get("HANSA_CLUSTER") or self._known.current
            env = os.environ if cluster_id == selected else {}
            profile = session.choose(self._known, cluster_id, env)
        else:
            profile = session.choose(self._known, self._cluster, os.environ)
            if cluster_id != profile.name and cluster_id not in self._noted:
                self._noted.add(cluster_id)
                self._screen.note(f"no profile is named {cluster_id}; its services go to {profile.name}")
        if profile not in self._open:
            self._open[profile] = session.connect(profile, self._path)
        return self._open[profile]


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
