"""`hansa job`: the runs of a service, their logs, and cleaning up."""

from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import confirmation, exits, following, options, session
from hansa.entrypoints.cli.client import segment
from hansa.entrypoints.cli.screen import Screen

app = typer.Typer(help="Jobs: list, show, read logs, remove.", no_args_is_help=True)
_WHERE = {"away": "runs at", "done": "ran at"}  # by the phase of a delegation; in the others it is nowhere else
JobName = Annotated[str | None, typer.Argument(metavar="JOB", help="The job; without, the newest.")]


@app.command("ls")
def list_jobs(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """List a service's jobs, newest first."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        jobs = following.newest_first(dict(manager.jobs(service)))
    screen.data([job.data() for job in jobs])
    screen.table(
        ["job", "status", "created", "started", "finished"],
        [
            (
                job.name,
                job.status,
                *(job.facts.get(time) for time in ("creation_time", "start_time", "finish_time")),
            )
            for job in jobs
        ],
        empty=f"service {service} has no jobs",
    )


@app.command()
def show(
    service: options.ServiceName,
    job: JobName = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Show one job: how it is, why, and where it runs."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        _, found = following.find_named(manager, service, job)
        story = manager.story(found.name)
    told = {key: story[key] for key in ("reason", "delegation", "received") if story.get(key)}
    screen.data({**found.data(), **told})
    screen.facts((key.replace("_", " "), value) for key, value in (*found.data().items(), *_in_words(told)))


def _in_words(told: dict[str, Any]) -> list[tuple[str, str]]:
    words = []
    if "reason" in told:
        words.append(("reason", str(told["reason"])))
    if isinstance(given := told.get("delegation"), dict) and (where := _WHERE.get(given.get("phase", ""))):
        words.append((where, f"{given.get('cluster_id')}/{given.get('service')}"))
    if isinstance(came := told.get("received"), dict):
        words.append(("came from", str(came.get("from"))))
    return words


@app.command()
def logs(
    service: options.ServiceName,
    job: JobName = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to follow at most.")] = 3600,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Print a job's log. Following exits with 1 if the job fails."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        if job is None or follow:
            service, found = following.find_named(manager, service, job)
            job = found.name
        if not follow:
            log = manager.log(service, job, timestamps=timestamps)
            screen.data({"service": service, "job": job, "log": log.decode(errors="replace")})
            if not as_json:
                screen.raw(log)
            return
        kept: list[bytes] = []
        show_piece = kept.append if as_json else screen.raw
        ended = following.follow(manager, service, job, screen, show=show_piece, timeout=timeout, timestamps=timestamps)
    screen.data({"service": service, "job": ended.data(), "log": b"".join(kept).decode(errors="replace")})
    screen.note(f"job {job}: {ended.status}")
    raise typer.Exit(exits.Exit.OK if ended.status == "Succeeded" else exits.Exit.FAILED)


@app.command("rm")
def remove(
    service: options.ServiceName,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="The job; without, all that have ended.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also jobs that still wait or run.")] = False,
    yes: options.Yes = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Remove one job, or all of a service that have ended."""
    if job is not None and everything:
        raise typer.BadParameter("name a job or give --all, not both", param_hint="--all")
    screen = Screen(as_json=as_json)
    which = f"job {job}" if job else ("all jobs" if everything else "all ended jobs")
    confirmation.require(f"remove {which} of {service}?", yes=yes)
    with session.opened(cluster) as manager:
        path = f"/system/logs/{segment(service)}" + (f"/{segment(job)}" if job else "")
        params = {"all": "true"} if everything else None
        manager.call("DELETE", path, params=params, what=which if job else f"service {service}", timeout=60)
    screen.data({"service": service, "job": job, "all": everything, "action": "removed"})
    screen.line(f"removed {which} of {service}")
