"""What does a job see? The host's programs, read-only; a few files of /etc; else only what is its own.

bubblewrap builds the namespaces, as the job's own unprivileged uid. Read `child.py` for the order of steps.
"""

import os
import stat

from . import linux, protocol

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_ENVIRONMENT = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}  # of bubblewrap itself; a job is given both anew
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
)
NAMES = ("/etc/hosts", "/etc/resolv.conf")
_STAGE = "/tmp"  # noqa: S108 - exists everywhere, and only our own mount namespace sees what we put over it
_OWN_HOSTS = "127.0.0.1 localhost job\n::1 localhost\n"


def own_mounts(disks: list[tuple[str, int]]) -> None:
    """From here on this process mounts for itself alone; these devices, at these folders, to begin with (root only)."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_SLAVE | linux.MS_REC)
    for folder, device in disks:
        linux.mount(f"/proc/self/fd/{device}", folder, linux.EXT4, linux.MS_NOSUID | linux.MS_NODEV)
        os.close(device)


def stage(sources: list[str]) -> list[str]:
    """Make each source reachable for any uid, whatever directories lie above it; after `own_mounts`.

    A workdir below a 0700 home cannot be bound by bubblewrap, which runs as the job and walks the path. So
    the sources are opened as root and bound to short names on a tmpfs that nobody else sees.
    """
    opened = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in sources]  # before the stage may hide them
    linux.mount("tmpfs", _STAGE, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    staged = []
    for number, fd in enumerate(opened):
        target = f"{_STAGE}/{number}"
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        linux.mount(f"/proc/self/fd/{fd}", target, flags=linux.MS_BIND | linux.MS_REC)
        os.close(fd)
        staged.append(target)
    return staged


def command(
    bwrap: str,
    order: protocol.Order,
    sources: list[str],
    environment: dict[str, str],
    *,
    own_network: bool,
    nested_userns: bool,
    seccomp: bytes | None,
    gate: tuple[int, int] | None,
) -> list[str]:
    """The bubblewrap command line of a job; `sources` are its workdir and binds, where bwrap finds them, and
    `environment` is what the job finds."""
    argv = [
        bwrap,
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    argv += ["--die-with-parent", "--cap-drop", "ALL", "--hostname", "job"]
    if own_network:
        argv += ["--unshare-net"]
    if not nested_userns:
        argv += ["--disable-userns"]
    if seccomp is not None:
        argv += ["--seccomp", _passed_file("seccomp", seccomp)]
    if gate is not None:
        reading, writing = gate
        for fd in gate:
            os.set_inheritable(fd, True)
        # bwrap stops when all is built, right before the program. It holds the writing end too: the end of
        # the launcher must not look like a release
        argv += ["--block-fd", str(reading), "--sync-fd", str(writing)]
    argv += _system()
    argv += _etc(order.network)
    argv += ["--proc", "/proc", "--dev", "/dev"]
    for scratch in ("/tmp", "/dev/shm"):  # noqa: S108 - of the job's own namespace
        argv += ["--size", str(order.memory), "--perms", "1777", "--tmpfs", scratch]
    argv += ["--bind", sources[0], "/job"]
    for source, (_, target, read_only) in zip(sources[1:], order.binds, strict=True):
        argv += ["--ro-bind" if read_only else "--bind", source, target]
    argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/job"]
    return [*argv, "--args", _passed_file("args", _variables(environment)), "--", *order.argv]


def _variables(environment: dict[str, str]) -> bytes:
    """Options that set the job's variables. Not on the command line, which every user of the machine can read."""
    words = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    if any("\0" in word for word in words):  # it ends a word: what follows would be obeyed as an option
        raise ValueError("a variable has a zero byte")
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _system() -> list[str]:
    argv = ["--ro-bind", "/usr", "/usr"]
    for path in SYSTEM_LINKS:
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            argv += ["--ro-bind", path, path]
    return argv


def _etc(network: protocol.Network) -> list[str]:
    argv = []
    for path in ETC:
        argv += ["--ro-bind-try", path, path]
    uid, gid = os.getuid(), os.getgid()
    users = (
        "root:x:0:0:root:/:/bin/sh",
        f"job:x:{uid}:{gid}:job:/tmp:/bin/sh",
        "nobody:x:65534:65534::/:/bin/sh",
    )
    groups = ("root:x:0:", f"job:x:{gid}:", "nogroup:x:65534:")
    files = {"/etc/passwd": "\n".join(users) + "\n", "/etc/group": "\n".join(groups) + "\n"}
    if network == "host":
        for path in NAMES:
            argv += ["--ro-bind-try", path, path]
    else:
        files["/etc/hosts"] = _OWN_HOSTS
    for path, text in files.items():
        argv += ["--perms", "0444", "--ro-bind-data", _passed_file("etc", text.encode()), path]
    return argv


def _passed_file(name: str, content: bytes) -> str:
    """A file without a name, for bubblewrap to read by number."""
    fd = os.memfd_create(name, 0)  # inheritable; bwrap closes what it has read
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return str(fd)
