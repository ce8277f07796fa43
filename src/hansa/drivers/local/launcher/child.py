"""What happens between the fork of a job and its first instruction? The order of the steps matters:

session and cgroup (while still root) → rlimits → network and mounts → uid → parent-death signal → exec.
"""

import contextlib
import math
import os
import resource
import signal
import socket
from dataclasses import dataclass
from typing import NoReturn

from . import cgroups, jail, landlock, linux, network, processes, protocol, seccomp

_FAILED, _NO_PROGRAM = 126, 127
# by Python, or by the launcher
_CHANGED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_OPEN_FILES = 4096
_HEADROOM = 4  # address space per byte of memory: programs reserve far more than they touch
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Setting:
    """What is the same for all jobs of this launcher."""

    level: protocol.Level
    bwrap: str
    root: bool
    launcher: int  # its pid


@dataclass(frozen=True)
class Descriptors:
    """The open files a job is born with."""

    output: int
    failure: int  # closed by a successful exec; carries the reason of a failed one
    gate: tuple[int, int] | None = None  # a byte through this pipe lets a held job go
    disks: tuple[int, ...] = ()  # devices, to be mounted where the order says


def run(setting: Setting, group: cgroups.Group | None, orders: socket.socket) -> NoReturn:
    """The whole life of a forked child, which never returns: prepare, wait for an order, become the job."""
    try:
        _prepare(setting, group, orders.fileno())
        message, received = protocol.receive(orders)
        orders.close()
        if message is None:  # not needed any more
            os._exit(0)
        output, failure, *others = received
        try:
            order = protocol.Order(**message["order"])
            gate, disks = (others[:2], others[2:]) if order.hold else ([], others)
            fds = Descriptors(output, failure, gate=(gate[0], gate[1]) if gate else None, disks=tuple(disks))
            _become_job(setting, order, message["uid"], group is not None, fds)
        except BaseException as error:
            os.write(failure, str(error).encode()[:4096])
    finally:
        os._exit(_FAILED)


def _prepare(setting: Setting, group: cgroups.Group | None, orders: int) -> None:
    """What needs no order; it is done while nobody waits."""
    stand_alone(setting, keep={orders})
    if group is not None:
        group.join()


def stand_alone(setting: Setting, keep: set[int]) -> None:
    """The first steps of every child: signals, files and its death are its own."""
    for number in _CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # exec would pass on that they are ignored
    signal.set_wakeup_fd(-1)
    os.setsid()
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in keep:  # a copy of another job's connection here would keep that one open
            with contextlib.suppress(OSError):
                os.close(fd)
    linux.die_with_parent(signal.SIGKILL)
    if os.getppid() != setting.launcher:  # it died before we asked to be told
        os._exit(_FAILED)


def _become_job(setting: Setting, order: protocol.Order, uid: int, by_cgroup: bool, fds: Descriptors) -> NoReturn:
    _limit(order, by_cgroup=by_cgroup, shared_uid=not setting.root)
    jailed = setting.level.filesystem == "bwrap"
    own_network = order.network != "host"
    if jailed and own_network and (setting.root or order.network == "own"):
        network.isolate(root=setting.root, any_port=order.network == "own")
        own_network = False  # nothing left for bwrap to do
    gid = uid if order.group is None else order.group
    sources = [order.workdir, *(source for source, _, _ in order.binds)]
    if setting.root and (jailed or order.disks):
        jail.own_mounts(list(zip(order.disks, fds.disks, strict=True)))
    if setting.root:
        give(order.workdir, uid, gid)
    if jailed and setting.root:
        sources = jail.stage(sources)

    os.umask(0o022 if order.group is None else 0o007)
    if setting.root:
        linux.become(uid, gid)
    linux.die_with_parent(signal.SIGKILL)  # again: the change of uid has cleared it
    if os.getppid() != setting.launcher:
        os._exit(_FAILED)
    environment = {"PATH": jail.DEFAULT_PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - the private one
    level = setting.level
    linux.no_new_privileges()
    filter_program = seccomp.program() if level.seccomp else None
    if jailed:
        argv = jail.command(
            setting.bwrap,
            order,
            sources,
            environment | order.env,
            own_network=own_network,
            nested_userns=level.nested_userns,
            seccomp=filter_program,
            gate=fds.gate,
        )
        _connect(fds.output)
        # bwrap runs outside of the walls it builds: no variable of a user, such as LD_PRELOAD, may reach it
        os.execve(setting.bwrap, argv, jail.OWN_ENVIRONMENT)  # noqa: S606 - no shell is the point
    os.chdir(order.workdir)
    environment |= {"HOME": order.workdir, "TMPDIR": order.workdir}
    _restrict(level, order, filter_program)
    _connect(fds.output)
    os.close(fds.failure)  # all is built: what goes wrong from here on is the job's own affair
    if fds.gate is not None:
        os.read(fds.gate[0], 1)
    try:
        os.execvpe(order.argv[0], order.argv, environment | order.env)  # noqa: S606
    except OSError as error:
        os.write(2, f"{order.argv[0]}: {error.strerror}\n".encode())
        os._exit(_NO_PROGRAM)


def _limit(order: protocol.Order, *, by_cgroup: bool, shared_uid: bool) -> None:
    limit_files(_OPEN_FILES)
    if order.largest_file:
        _lower(resource.RLIMIT_FSIZE, order.largest_file)
    if by_cgroup:
        return
    # counted per user. Leaving it out means unlimited forks: a runaway job then takes the whole machine along
    already = len(processes.of_uids({os.getuid()})) if shared_uid else 0
    _lower(resource.RLIMIT_NPROC, order.pids + already)
    _lower(resource.RLIMIT_AS, _HEADROOM * order.memory)
    if math.isfinite(order.seconds):
        _lower(resource.RLIMIT_CPU, int(order.seconds * max(1.0, order.cpu / 1000)) + 1)


def limit_files(most: int) -> None:
    """How many may be open at once; and none is written when a process breaks down."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, most)


def limit_memory(most: int) -> None:
    """Address space, which holds without cgroups too: whoever asks for more gets none."""
    _lower(resource.RLIMIT_AS, most)


def _lower(which: int, value: int) -> None:
    """Only down: without CAP_SYS_RESOURCE not even root may raise a hard limit."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def give(workdir: str, uid: int, gid: int) -> None:
    """Hand the workdir and what is in it to the job, which has not run yet: nobody can swap links."""
    for _, directories, files, here in os.fwalk(workdir):
        os.chown(here, uid, gid)
        for name in (*directories, *files):
            os.chown(name, uid, gid, dir_fd=here, follow_symlinks=False)


def _restrict(level: protocol.Level, order: protocol.Order, filter_program: bytes | None) -> None:
    """Needs `no_new_privileges` before it."""
    if level.filesystem == "landlock":
        read_only = [source for source, _, closed in order.binds if closed]
        writable = [source for source, _, closed in order.binds if not closed]
        host_names = (*jail.ETC, *jail.NAMES, "/etc/passwd", "/etc/group")
        landlock.restrict(
            ["/usr", *jail.SYSTEM_LINKS, *host_names, *read_only],
            [order.workdir, *writable],
            _DEVICES,
            tcp=order.network != "none",
        )
    if filter_program is not None:
        linux.install_seccomp(filter_program)


def _connect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, fd in enumerate((nothing, output, output)):
        os.dup2(fd, target)
    if nothing > 2:
        os.close(nothing)
