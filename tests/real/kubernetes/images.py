"""Which container images do tests have, with no engine to build and no registry to pull from?

    pause()      what holds a pod's namespaces           busybox()    a shell and its tools, `localhost/bb:1`
    python()     Python 3.11 of Debian, `localhost/python:1`, and on top of it whatever package a test layers onto it:

        archive = python("localhost/hansa:1", [Layer(site_packages, PurePosixPath("/opt/hansa"))], Config(…))
        kubernetes.import_image(archive)

Each is an archive in the cache, named for what is in it. Pods name them with `imagePullPolicy` Never or IfNotPresent
(never `:latest`, which Kubernetes always pulls).
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from real import cache
from real.kubernetes import debian, oci

PAUSE = "localhost/pause:1"
BUSYBOX = "localhost/bb:1"
PYTHON = "localhost/python:1"
NOBODY = "65534:65534"

_FORMAT = "1"  # of what is written below; another one makes all images anew
_PROBE_SECONDS = 20.0
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


def pause() -> Path:
    # Its one program has to be called busybox, since by its name it knows what it is asked to do.
    sleep = oci.Config(entrypoint=("/bin/busybox", "sleep", "2147483647"))
    return image(PAUSE, [oci.Layer(_folders() / "pause")], sleep)


def busybox(name: str = BUSYBOX) -> Path:
    return image(name, [oci.Layer(_folders() / "busybox")], oci.Config(command=("/bin/sh",)))


def python(name: str = PYTHON, layers: Sequence[oci.Layer] = (), config: oci.Config | None = None) -> Path:
    """Python beside busybox' tools, for nobody in particular."""
    below = [oci.Layer(_folders() / "busybox"), oci.Layer(debian.fetch(cache.quiet) / "python")]
    usual = oci.Config(entrypoint=("python3",), environment={"PYTHONUNBUFFERED": "1"}, user=NOBODY, folder="/tmp")
    return image(name, [*below, *layers], config or usual)


def image(name: str, layers: Sequence[oci.Layer], config: oci.Config) -> Path:
    """The archive of such an image, written if nobody did so before."""
    ingredients = [_FORMAT, name, repr(config), *(layer.fingerprint() for layer in layers)]
    short = name.rpartition("/")[2].partition(":")[0]

    def make(folder: Path) -> None:
        oci.write(folder / "image.tar", name, layers, config)

    return cache.made(f"image-{short}-{cache.key(*ingredients)}", make) / "image.tar"


def _folders() -> Path:
    """What `pause` and `busybox` are made of."""
    program = debian.fetch(cache.quiet) / "busybox" / "usr" / "bin" / "busybox"

    def make(folder: Path) -> None:
        for name in ("pause", "busybox"):
            (folder / name / "bin").mkdir(parents=True)
            (folder / name / "bin" / "busybox").write_bytes(program.read_bytes())
        whole = folder / "busybox"
        for name in ("etc", "proc", "sys", "dev", "root", "home", "tmp"):
            (whole / name).mkdir()
        (whole / "etc" / "passwd").write_text(_PASSWD)
        (whole / "etc" / "group").write_text(_GROUP)
        listed = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True)
        for tool in set(listed.stdout.split()) - {"busybox"}:
            (whole / "bin" / tool).symlink_to("busybox")
        for path in folder.rglob("*"):  # whatever this account's umask is
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        (whole / "tmp").chmod(0o1777)

    return cache.made(f"busybox-{cache.key(_FORMAT, str(program), _PASSWD, _GROUP)}", make)
