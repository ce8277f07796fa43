"""How does a folder get a hard limit? It is a file system of its own, in a file: ext4 on a loop device. Root only.

Nothing is mounted in the machine's own view. An image is attached to a loop device and mounted without a place: open
handles are all that keeps both, so whatever happens to the manager, the kernel takes them back with its last handle.
Whoever runs a job mounts the same device once more, in that job's own mount namespace.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa.drivers.local.launcher import linux

KIND = linux.EXT4
SMALLEST = 16 * 2**20
_CONTROL = "/dev/loop-control"
_GET_FREE, _CONFIGURE, _GET_STATUS = 0x4C82, 0x4C0A, 0x4C05
_INFORMATION = 232  # bytes of a struct loop_info64
_AUTOCLEAR = 4
_MAJOR = 7  # of loop devices
_BLOCK = 4096
_TRIES = 100
_SECONDS = 60.0
_NO_JOURNAL = ("-O", "^has_journal")  # a run that the machine's own death cut short starts over anyway
_NO_BARRIER = ("nobarrier",)
_MENDED = 1  # e2fsck found something and put it right


@dataclass(frozen=True, slots=True)
class Attached:
    """An image on its loop device, for as long as these handles are open."""

    device: int
    top: int  # the root of its file system

    @property
    def folder(self) -> Path:
        """Where this process, and no other, reaches it."""
        return Path(f"/proc/self/fd/{self.top}")

    @property
    def full(self) -> bool:
        """Whether hardly a block, or no further file, fits in."""
        facts = os.fstatvfs(self.top)
        return facts.f_bavail < max(8, facts.f_blocks // 200) or facts.f_ffree == 0

    def write_out(self, image: Path) -> None:
        """Everything is in the image, and the image on the machine's disk. Only now it is known that there was room: an
        image is a file with holes, and whoever writes into it is told before they are filled."""
        with _opened(self.folder, os.O_DIRECTORY) as top:  # the handle that we have is good for paths only
            linux.write_out(top)
        with _opened(image, os.O_NOFOLLOW) as fd:
            os.fsync(fd)

    def close(self) -> None:
        """What was not written to the image yet is written now, so it can take a while."""
        os.close(self.top)
        os.close(self.device)


def make(image: Path, size: int, *, journal: bool) -> None:
    """An empty file system; the file takes room only as it fills."""
    with _whole(image) as fd:
        os.ftruncate(fd, size // _BLOCK * _BLOCK)
        program = shutil.which("mkfs.ext4", path=_path()) or "mkfs.ext4"
        kind = () if journal else _NO_JOURNAL
        options = ("-q", "-F", "-b", str(_BLOCK), "-m", "0", *kind)
        settled = ("-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0")
        _run(program, *options, *settled, str(image))


@contextlib.contextmanager
def _whole(image: Path) -> Iterator[int]:
    """A new file that is there whole or not at all."""
    fd = os.open(image, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    except BaseException:
        image.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def copy(template: Path, image: Path) -> None:
    """Only what is not empty is copied: a fraction of a millisecond, where making one takes ten."""
    with template.open("rb") as old, _whole(image) as new:
        size = os.fstat(old.fileno()).st_size
        os.ftruncate(new, size)
        for begin, end in _filled(old.fileno(), size):
            at = begin
            while at < end:
                data = os.pread(old.fileno(), min(2**20, end - at), at)
                at += os.pwrite(new, data, at)


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        yield fd
    finally:
        os.close(fd)


def _filled(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Where this file is not empty: from, to."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but emptiness is left
                return
            raise
        end = os.lseek(fd, begin, os.SEEK_HOLE)
        yield begin, end


def taken(image: Path) -> int:
    """Bytes that it takes by now; 0 if it is gone."""
    try:
        return image.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def _check(image: Path) -> None:
    """Puts right what a machine that died may have left; raises OSError if that cannot be."""
    program = shutil.which("e2fsck", path=_path()) or "e2fsck"
    try:
        _run(program, "-p", str(image), fine=_MENDED)
    except OSError as error:
        words = f"{image.name} is damaged, and not mended by itself: try `e2fsck -f` on it, with no run that uses it"
        raise OSError(error.errno, words) from error


def attach(image: Path, *, fresh: bool = False, lasting: bool = False) -> Attached:
    """An image is on one device at a time, or two would write over each other: one that a run may still have is looked
    for, unless the image is `fresh`. Calls for one image must not overlap. A `lasting` image keeps write barriers, so
    that its content survives a crash of the machine; others go without, which is faster."""
    device = None if fresh else _looped_before(image)
    if device is None:
        if not fresh:
            _check(image)
        device = _looped(image)
    try:
        flags = () if lasting else _NO_BARRIER
        return Attached(device, linux.mount_without_place(f"/dev/loop{_number(device)}", KIND, flags))
    except OSError:
        os.close(device)
        raise


def _looped_before(image: Path) -> int | None:
    """By what the file is, not by its path: the kernel tells another one where links or mounts lead to it. Devices of
    others are left alone, for one that is open just now is not taken back."""
    facts = image.stat()
    for known in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if Path(known.read_text().rstrip("\n")).name != image.name:
                continue
            device = os.open(f"/dev/{known.parts[3]}", os.O_RDWR | os.O_CLOEXEC)
            try:  # open, it cannot change any more; before, it may have
                status = fcntl.ioctl(device, _GET_STATUS, bytes(_INFORMATION))
            except OSError:
                os.close(device)
                continue
            if struct.unpack_from("QQ", status) == (_old_number(facts.st_dev), facts.st_ino):
                return device
            os.close(device)
    return None


def _old_number(device: int) -> int:
    """A device's number as the kernel's loop driver tells it (huge_encode_dev)."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _looped(image: Path) -> int:
    backing = os.open(image, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        for _ in range(_TRIES):
            control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
            try:
                number = fcntl.ioctl(control, _GET_FREE)
            finally:
                os.close(control)
            device = os.open(_node(number), os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _CONFIGURE, _configuration(backing))
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # somebody else took it in this moment
                    raise
            else:
                return device
        raise OSError(errno.EBUSY, "no loop device is free")
    finally:
        os.close(backing)


def _node(number: int) -> str:
    """The kernel makes devices as they are needed; where nobody keeps /dev, as in a container, we name them."""
    path = f"/dev/loop{number}"
    if not os.path.exists(path):
        with contextlib.suppress(FileExistsError):
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(_MAJOR, number))
    return path


def _configuration(backing: int) -> bytes:
    """struct loop_config: the file, the block size, a loop_info64 with nothing but flags, and eight unused words."""
    information = bytearray(_INFORMATION)
    struct.pack_into("I", information, 52, _AUTOCLEAR)
    return struct.pack("II", backing, _BLOCK) + bytes(information) + bytes(64)


def _number(device: int) -> int:
    return os.minor(os.fstat(device).st_rdev)


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _run(*argv: str, fine: int = 0) -> None:
    try:
        ended = subprocess.run(argv, check=False, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise OSError(errno.ETIMEDOUT, f"{argv[0]} did not end") from error
    if not 0 <= ended.returncode <= fine:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {ended.returncode}"]
        raise OSError(errno.EIO, f"{argv[0]}: {said[-1]}")
