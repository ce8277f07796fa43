"""`hansa run`: give a service an input, now (synchronously) or as a job."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import httpx
import typer

from hansa.entrypoints.cli import answers, exits, following, inputs, options, session
from hansa.entrypoints.cli.client import Manager, refusal, segment
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

JOB_HEADER = "X-Hansa-Job"
EXIT_HEADER = "X-Hansa-Exit-Code"
REASON_HEADER = "X-Hansa-Reason"
_SCRIPT_FAILED = (502,)
_APPEARS = 10.0  # seconds a submitted job may take to show up in the list


def run(
    service: options.ServiceName,
    *,
    file: Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="The input; - is stdin.")] = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help="The input, given here.")] = None,
    as_job: Annotated[bool, typer.Option("--async", help="Submit a job instead of waiting for the answer.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="With --async: follow the job until it ends.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE|DIR", help="Where the answer goes; else stdout."),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Send and print bytes as they are, without base64.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for the answer, or for the job.")] = 300,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Run a service on an input."""
    if file is not None and text is not None:
        raise typer.BadParameter("give either --file or --text", param_hint="--text")
    if as_job and output is not None:
        raise typer.BadParameter("a job writes to the service's output buckets", param_hint="--output")
    if wait and not as_job:
        raise typer.BadParameter("it belongs to --async; without, the answer is waited for anyway", param_hint="--wait")
    screen = Screen(as_json=as_json)
    given = inputs.of(file, text, encode=not raw)
    with session.opened(cluster) as manager:
        # The admin's Basic sign-in is not accepted by /run and /job; the service's own token is.
        token = str(manager.service(service).get("token") or "") if manager.basic else ""
        order = _Order(manager, service, given, token, timeout)
        if as_job:
            _submit(order, screen, wait=wait)
        else:
            _answer(order, screen, output=output, raw=raw)


@dataclass(frozen=True, slots=True)
class _Order:
    """What to run, where, and as whom."""

    manager: Manager
    service: str
    given: inputs.Input
    token: str
    timeout: float

    def post(self, route: str) -> httpx.Response:
        headers = {"Content-Length": str(self.given.length), "Content-Type": "application/octet-stream"}
        return self.manager.call(
            "POST",
            f"/{route}/{segment(self.service)}",
            content=self.given.pieces(),
            headers=headers,
            token=self.token,
            timeout=self.timeout,
            also=_SCRIPT_FAILED if route == "run" else (),
            what=f"service {self.service} to {route}",
        )


def _answer(order: _Order, screen: Screen, *, output: Path | None, raw: bool) -> None:
    with screen.waiting(f"{order.service} in {order.manager.name}"):
        try:
            response = order.post("run")
        except errors.NotFound as error:
            order.manager.service(order.service)  # if it is not there, that is what is wrong
            error.hint = error.hint or "the cluster may run jobs only: try --async"
            raise
    if not response.is_success:
        _script_failed(order, response, screen)
    answer = answers.decode(response.content, raw=raw)
    if output is not None:
        written = answers.save(answer, output, name=f"{order.service}-output")
        screen.data({"service": order.service, "files": [str(path) for path in written]})
        for path in written:
            screen.line(str(path))
    elif screen.as_json:
        text = None if answer.archive else answer.content.decode(errors="replace")
        screen.data({"service": order.service, "answer": text, "files": answer.names()})
    elif answer.archive:
        raise errors.Invalid(f"the answer holds {len(answer.names())} files", hint="give a folder: --output DIR")
    else:
        screen.raw(answer.content)


def _script_failed(order: _Order, response: httpx.Response, screen: Screen) -> NoReturn:
    """A Hansa manager gives a failed script's output and exit code; any other 502 is a gateway's."""
    code, reason = response.headers.get(EXIT_HEADER), response.headers.get(REASON_HEADER, "")
    if code is None:
        raise refusal(response, order.manager.name, f"service {order.service}")
    screen.data({"service": order.service, "exit_code": code, "output": response.text, "reason": reason})
    screen.aside(response.text)
    screen.error(
        f"the script of {order.service} " + (f"failed: {reason}" if reason else f"ended with exit code {code}")
    )
    raise typer.Exit(exits.Exit.FAILED)


def _submit(order: _Order, screen: Screen, *, wait: bool) -> None:
    manager, service = order.manager, order.service
    # A plain OSCAR manager does not name the job it made, so remember which ones there were.
    before = _names(manager, service)
    response = order.post("job")
    job = response.headers.get(JOB_HEADER) or _appeared(manager, service, before, screen)
    if not wait or job is None:
        screen.data({"service": service, "job": job})
        screen.line(job or f"submitted to {service}")
        if job is None:
            screen.warn("the job is not in the list yet; it may run in another cluster")
        return
    screen.note(f"job {job}")
    log: list[bytes] = []
    show = log.append if screen.as_json else screen.raw
    ended = following.follow(manager, service, job, screen, show=show, timeout=order.timeout)
    screen.data({"service": service, "job": ended.data(), "log": b"".join(log).decode(errors="replace")})
    if ended.status != "Succeeded":
        why = str(manager.story(job).get("reason") or "")
        screen.error(
            f"job {job} ended as {ended.status}" + (f": {why}" if why else ""),
            hint=f"its log: hansa job logs {service} {job}",
        )
        raise typer.Exit(exits.Exit.FAILED)
    screen.note(f"job {job}: {ended.status}")


def _names(manager: Manager, service: str) -> set[str]:
    try:
        return {name for name, _ in manager.jobs(service)}
    except errors.HansaError:
        return set()  # who may submit may not always list


def _appeared(manager: Manager, service: str, before: set[str], screen: Screen) -> str | None:
    """The job that came since; the newest, with a warning, if somebody else submitted too."""
    end = time.monotonic() + _APPEARS
    while time.monotonic() < end:
        try:
            fresh = {name: job for name, job in manager.jobs(service) if name not in before}
        except (errors.NotFound, errors.Forbidden):
            return None
        if len(fresh) > 1:
            screen.warn(f"{len(fresh)} jobs came at once; taking the newest for yours")
        if fresh:
            return following.newest_first(fresh)[0].name
        time.sleep(0.5)
    return None


def register(app: typer.Typer) -> None:
    app.command()(run)
