"""Which kernel calls does no job need? A filter in the kernel's own bytecode, assembled here.

Jobs keep every ordinary call. Refused are the doors by which sandboxes were left before: mounting, new
namespaces, keyrings, eBPF, io_uring, other processes' memory, kernel modules. Of sockets a job opens those of ordinary
programs: an empty network namespace does not close a family that has no namespaces, as the one to the hypervisor.
"""

import errno
import os
import socket
import struct
from dataclasses import dataclass

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32  # offsets in struct seccomp_data, little endian
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_CLONE_NEWUSER = 0x10000000
_X32_BIT = 0x40000000

# the same number on every architecture: calls younger than Linux 5.1
_YOUNG = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
}
_CLONE3 = 435
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
_ROUTE = 0  # the one protocol of netlink by which libraries look for addresses and interfaces


@dataclass(frozen=True)
class _Machine:
    audit: int
    clone: int
    sockets: tuple[int, int]  # socket and socketpair
    refused: dict[str, int]


_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        clone=56,
        sockets=(41, 53),
        refused={
            "ptrace": 101,
            "syslog": 103,
            "pivot_root": 155,
            "acct": 163,
            "settimeofday": 164,
            "mount": 165,
            "umount2": 166,
            "swapon": 167,
            "swapoff": 168,
            "reboot": 169,
            "iopl": 172,
            "ioperm": 173,
            "init_module": 175,
            "delete_module": 176,
            "quotactl": 179,
            "kexec_load": 246,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "open_by_handle_at": 304,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "finit_module": 313,
            "kexec_file_load": 320,
            "bpf": 321,
            "userfaultfd": 323,
        },
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        clone=220,
        sockets=(198, 199),
        refused={
            "umount2": 39,
            "mount": 40,
            "pivot_root": 41,
            "quotactl": 60,
            "acct": 89,
            "unshare": 97,
            "kexec_load": 104,
            "init_module": 105,
            "delete_module": 106,
            "syslog": 116,
            "ptrace": 117,
            "reboot": 142,
            "settimeofday": 170,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "swapon": 224,
            "swapoff": 225,
            "perf_event_open": 241,
            "open_by_handle_at": 265,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "finit_module": 273,
            "bpf": 280,
            "userfaultfd": 282,
            "kexec_file_load": 294,
        },
    ),
}


def program(machine: str = os.uname().machine) -> bytes | None:
    """The filter for this machine; None where we have no table, and the level then says so."""
    known = _MACHINES.get(machine)
    if known is None:
        return None
    refuse = _instruction(_RETURN, _ERRNO | errno.EPERM)
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_IF_EQUAL, known.audit, then=1),
        _instruction(_RETURN, _KILL_PROCESS),  # numbers mean other calls there (32-bit programs)
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [_instruction(_IF_AT_LEAST, _X32_BIT, otherwise=1), refuse]
    for number in (known.refused | _YOUNG).values():
        code += [_instruction(_IF_EQUAL, number, otherwise=1), refuse]
    code += [
        # its flags lie behind a pointer where no filter can look; libraries fall back to clone
        _instruction(_IF_EQUAL, _CLONE3, otherwise=1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
        _instruction(_IF_EQUAL, known.clone, otherwise=4),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_IF_BITS, _CLONE_NEWUSER, otherwise=1),
        refuse,
        _instruction(_RETURN, _ALLOW),
        *_sockets(*known.sockets),
    ]
    return b"".join(code)


def _sockets(one: int, pair: int) -> list[bytes]:
    """The end of the filter: everything that is no socket passes. A family is an int, so its lower half is all of it;
    there is no other way to a socket, for `socketcall` is a call of 32-bit programs and io_uring is refused."""
    allow = _instruction(_RETURN, _ALLOW)
    families = [part for family in _FAMILIES for part in (_instruction(_IF_EQUAL, family, otherwise=1), allow)]
    return [
        _instruction(_IF_EQUAL, one, then=2),
        _instruction(_IF_EQUAL, pair, then=1),
        allow,
        _instruction(_LOAD, _FIRST_ARGUMENT),
        *families,
        _instruction(_IF_EQUAL, socket.AF_NETLINK, then=1),
        _instruction(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
        _instruction(_LOAD, _THIRD_ARGUMENT),
        _instruction(_IF_EQUAL, _ROUTE, then=1),
        _instruction(_RETURN, _ERRNO | errno.EPROTONOSUPPORT),
        allow,
    ]


def _instruction(operation: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """`then` and `otherwise` count the instructions to skip."""
    return struct.pack("=HBBI", operation, then, otherwise, value)
