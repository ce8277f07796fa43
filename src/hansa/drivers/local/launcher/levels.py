"""How well can this machine isolate a job? Found by trying the real thing, never by version numbers."""

import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from . import cgroups, child, landlock, protocol, seccomp
from .spare import Spare

_RANKS: dict[protocol.LevelName, int] = {"process": 0, "landlock": 1, "namespaces": 2, "full": 3}
_TRIAL_SECONDS = 10


def find(ceiling: protocol.Ceiling, tree: cgroups.Tree | None, uid: int) -> child.Setting:
    """The best level below the ceiling at which a trial job comes back well."""
    root = os.geteuid() == 0
    bwrap = shutil.which("bwrap") or ""
    for level in _candidates(ceiling, tree, root=root, bwrap=bool(bwrap)):
        setting = child.Setting(level=level, bwrap=bwrap, root=root, launcher=os.getpid())
        if _works(setting, uid):
            return setting
    raise RuntimeError("not even a plain process could be started")


def _candidates(
    ceiling: protocol.Ceiling, tree: cgroups.Tree | None, *, root: bool, bwrap: bool
) -> Iterator[protocol.Level]:
    plain = protocol.Level(
        name="process",
        filesystem="none",
        limits="rlimits" if tree is None else "cgroup-v2" if tree.version == "v2" else "cgroup-v1",
        kill=tree.kills if tree is not None else "uid" if root else "group",
        uid="per-job" if root else "shared",
        network="shared",
        nested_userns=True,
        seccomp=seccomp.program() is not None,
    )
    filters = [plain, replace(plain, seccomp=False)] if plain.seccomp else [plain]
    allowed = _RANKS[ceiling.level]
    if bwrap and allowed >= _RANKS["namespaces"]:
        name: protocol.LevelName = "full" if tree is not None and root and allowed == _RANKS["full"] else "namespaces"
        kill = plain.kill if tree is not None else "pidns"
        for base in filters:
            jailed = replace(base, name=name, filesystem="bwrap", network="netns", kill=kill)
            yield replace(jailed, nested_userns=False)
            # bwrap before 0.8 cannot forbid them, but the filter refuses their making
            yield replace(jailed, nested_userns=True)
    abi = landlock.abi()
    if abi and allowed >= _RANKS["landlock"]:
        network: Literal["no-tcp", "shared"] = "no-tcp" if abi >= 4 else "shared"
        for base in filters:
            yield replace(base, name="landlock", filesystem="landlock", network=network, landlock_abi=abi)
    yield from filters


def _works(setting: child.Setting, uid: int) -> bool:
    workdir = tempfile.mkdtemp(prefix="hansa-trial-")
    order = protocol.Order(
        id="trial",
        argv=["/bin/true"],
        env={},
        workdir=workdir,
        cpu=1000,
        memory=256 << 20,
        seconds=_TRIAL_SECONDS,
        pids=64,
        network="own",
        binds=[],
        group=None,
        hold=False,
    )
    output = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        trial = Spare(setting, None, 0)
        trial.employ(order, uid, child.Descriptors(output=output, failure=output))
        return _ends_well(trial.pid)
    finally:
        os.close(output)
        shutil.rmtree(workdir, ignore_errors=True)


def _ends_well(pid: int) -> bool:
    ended = os.pidfd_open(pid)
    try:
        if not select.select([ended], [], [], _TRIAL_SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1] == 0
    finally:
        os.close(ended)
