"""What can this machine carry, or the Kubernetes cluster that is to run things, and how is what is missing put right?
`hansa doctor` prints the answers."""

import asyncio
import ipaddress
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from hansa import storage
from hansa.bootstrap import open_files, part_checks, parts_here
from hansa.bootstrap.finding import Check
from hansa.bootstrap.parts_here import Part, Port
from hansa.drivers import local, s3
from hansa.kernel import quantities
from hansa.kernel.errors import HansaError
from hansa.settings import Settings

_Look = Callable[[Settings], Awaitable[Check]]

WAIVED = "name the audience of this cluster in oidc.issuers instead of *, so that no other client can act as its users"
_LEAST_SPACE = 2 * 2**30
_SECONDS = 20.0
_SMALL_FEDERATION = 1000
_RUNS_HERE = ("machine", "isolation", "disk limits", "podman")  # what matters only where jobs run on this machine
_CLUSTER_SECONDS = 60.0
_LEVELS = {
    "full": "namespaces, cgroup limits and a user id of its own for every job",
    "namespaces": "namespaces; limits by rlimit only",
    "landlock": "file and TCP rules of the kernel only; jobs of strangers are not safe",
    "process": "no isolation; run only what you trust",
}


async def doctor(given: Settings) -> list[Check]:
    """Every check, bounded in time; one that falls over is a finding itself."""
    found: list[Check] = []
    for name, check in _all(given):
        if given.driver == "kubernetes" and name in _RUNS_HERE:
            continue
        if given.role == "hub" and name in (*_RUNS_HERE, "object store"):
            continue
        try:
            async with asyncio.timeout(_SECONDS):
                found.append(await check(given))
        except TimeoutError:
            found.append(Check(name, False, f"no answer within {_SECONDS:.0f} s"))
        except HansaError as error:
            found.append(Check(name, False, error.message, error.hint))
        except OSError as error:
            found.append(Check(name, False, str(error)))
    found += await asyncio.gather(*(_issuer(issuer.url) for issuer in given.oidc.issuers))
    found += [_any_audience(issuer.url) for issuer in given.oidc.issuers if issuer.any_audience]
    return found + (await _kubernetes(given) if given.driver == "kubernetes" and given.role != "hub" else [])


def _all(given: Settings) -> list[tuple[str, _Look]]:
    """Those of the machine, and those of each part that is to run here."""
    parts = parts_here.of(given)
    names = {part.name: "database" if part is parts[0] else f"{part.name}'s database" for part in parts}
    return [
        ("python", _python),
        ("machine", _machine),
        ("data folder", _data_folder),
        ("isolation", _isolation),
        ("disk limits", _disk_limits),
        ("object store", _object_store),
        *((names[part.name], _database_of(part, names[part.name])) for part in parts),
        *((port.name, _port_of(part, port)) for part in parts for port in part.ports),
        ("open files", _open_files),
        ("podman", _podman),
    ]


def _database_of(part: Part, name: str) -> _Look:
    return lambda _: part_checks.database(part, name)


def _port_of(part: Part, port: Port) -> _Look:
    async def look(_: Settings) -> Check:
        return part_checks.port(part, port)

    return look


async def _python(_: Settings) -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    fits = sys.version_info >= (3, 11)
    return Check("python", fits, version, "" if fits else "Hansa needs Python 3.11 or newer")


async def _machine(given: Settings) -> Check:
    capacity = local.LocalNode(socket.gethostname(), given.jobs).capacity()
    return Check("machine", True, f"{capacity.cpu}m cpu and {quantities.show_size(capacity.memory)} memory for jobs")


async def _data_folder(given: Settings) -> Check:
    folder = given.data.absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        hint = "set data (HANSA_DATA) to a folder this user may write to"
        return Check("data folder", False, f"{folder} cannot be used: {existing}: {error.strerror}", hint)
    free = shutil.disk_usage(existing).free
    enough = free >= _LEAST_SPACE
    hint = "" if enough else "free some space: jobs, logs and objects live there"
    return Check("data folder", enough, f"{folder}, {quantities.show_size(free)} free", hint)


async def _isolation(_: Settings) -> Check:
    level = await local.probe()
    detail = f"level {level.name}: {_LEVELS[level.name]}"
    if level.name == "full":
        return Check("isolation", True, detail)
    if shutil.which("bwrap") is None:
        hint = "install bubblewrap (apt-get install bubblewrap)"
    elif os.geteuid() != 0:
        hint = "run the manager as root for limits by cgroup and a user id for every job"
    else:
        hint = "allow user namespaces and writable cgroups (a systemd unit needs Delegate=yes)"
    return Check("isolation", None, detail, hint)


async def _disk_limits(given: Settings) -> Check:
    most = local.Space(given.data.absolute(), given.jobs).most
    has = local.per_run(given.jobs, most)
    if shortage := local.shortage(given.jobs, most):
        hint = "lower jobs.disk_reserve, raise jobs.disk, or have data on a larger disk"
        return Check("disk limits", False, f"no job can ever begin: {shortage}", hint)
    size = quantities.show_size(has)
    if has < quantities.size(given.jobs.disk_per_run, what="disk"):
        size = f"{size} (half of this small disk, not {given.jobs.disk_per_run})"
    if not (why := await asyncio.to_thread(local.no_images)):
        return Check("disk limits", True, f"hard: every run and volume is a file system of its own; {size} for a run")
    soft = (
        "one file at a time" if given.sandbox.runtime == "podman" else "a run that writes more is ended, moments later"
    )
    hint = "run the manager as root, with loop devices, ext4 and e2fsprogs"
    return Check("disk limits", None, f"soft ({why}): {size} for a run; {soft}", hint)


async def _object_store(given: Settings) -> Check:
    if given.storage.kind == "embedded":
        return Check("object store", True, f"embedded SeaweedFS ({Path(s3.weed_binary()).name})")
    asked = given.storage
    address = storage.StoreAddress(asked.endpoint, asked.region, asked.verify)
    store = s3.open_s3(address, storage.Keys(asked.access_key, asked.secret_key.get_secret_value())).store
    try:
        await store.check()  # signed: it answers also to whether the keys are right
    except HansaError as error:
        return Check("object store", False, f"{asked.kind} at {asked.endpoint}: {error.message}", error.hint)
    finally:
        await store.close()
    return Check("object store", True, f"{asked.kind} at {asked.endpoint}")


async def _open_files(given: Settings) -> Check:
    limit = open_files.most()
    detail = f"{limit} at once"
    if given.role == "manager":
        return Check("open files", True, detail)
    clusters = open_files.clusters_within(limit)
    enough = clusters >= _SMALL_FEDERATION
    hint = "" if enough else "raise the hard limit (ulimit -Hn, or LimitNOFILE= in a systemd unit)"
    return Check("open files", True if enough else None, f"{detail}, enough for a hub of {clusters} clusters", hint)


async def _podman(given: Settings) -> Check:
    found = shutil.which("podman")
    needed = given.sandbox.runtime == "podman"
    if found:
        return Check("podman", True, "present" + ("" if needed else "; sandbox.runtime = podman would use it"))
    hint = "install podman, or keep sandbox.runtime = host (scripts then run in this machine's own userland)"
    return Check("podman", False if needed else None, "not installed", hint)


async def _issuer(url: str) -> Check:
    name = f"issuer {url}"
    try:
        async with httpx.AsyncClient(timeout=5) as http:
            answer = await http.get(url.rstrip("/") + "/.well-known/openid-configuration")
            answer.raise_for_status()
            return Check(name, True, f"keys at {answer.json()['jwks_uri']}")
    except (httpx.HTTPError, ValueError, KeyError) as error:
        return Check(name, False, f"no discovery document: {error}", "check the address and the network")


def _any_audience(url: str) -> Check:
    return Check(f"audience {url}", None, "not checked: a token made for any client of the issuer lets in", WAIVED)


def _way_to_store(given: Settings) -> Check:
    """Pods are given the address that everybody is told."""
    asked = given.storage
    address = asked.public_endpoint or asked.endpoint or f"http://{asked.host}"
    host = urlsplit(address).hostname or asked.host
    if _is_our_own(host):
        hint = "jobs with files would fail: set storage.host or storage.public_endpoint to what pods can reach"
        return Check("pods' store", None, f"pods would look for the object store at {host}, and find themselves", hint)
    return Check("pods' store", True, f"pods look for it at {host}")


def _is_our_own(host: str) -> bool:
    """Whether it means another machine to everybody."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


async def _kubernetes(given: Settings) -> list[Check]:
    from hansa.drivers.kubernetes import checkup  # noqa: PLC0415 - a large library that a machine alone does without

    asked = given.kubernetes
    wanted = checkup.Wanted(
        kubeconfig=asked.kubeconfig,
        context=asked.context,
        image=asked.image,
        own_namespace=asked.namespace,
        namespaces=asked.namespaces,
        cluster=given.cluster.id,
        binding=asked.binding,
        policies=asked.network.policies,
        pull_secrets=asked.pull_secrets,
        storage_class=asked.storage_class,
        priority_class=asked.priority_class,
        node_selector=asked.node_selector,
    )
    try:
        async with asyncio.timeout(_CLUSTER_SECONDS):
            found = await checkup.findings(wanted)
    except TimeoutError:
        return [Check("kubernetes", False, f"no answer within {_CLUSTER_SECONDS:.0f} s")]
    except HansaError as error:
        return [Check("kubernetes", False, error.message, error.hint)]
    return [_way_to_store(given), *(Check(one.name, one.ok, one.detail, one.hint) for one in found)]
