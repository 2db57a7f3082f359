"""A process that gives up most of its rights and then becomes another program: what opens files of strangers runs so.
Standalone, as `worker.py` is: the standard library only.

    python confine.py '{"reads": [...], "writes": [...], "bytes": N}' PROGRAM ARGUMENTS

What is given up stays so over `exec` and for all children. Landlock (landlock(7)) leaves the listed files and folders
to be read and written and nothing else, no TCP, no signals to others. A seccomp filter (seccomp(2)) leaves no sockets
at all, and no system calls that get around Landlock or into other processes. The registry has no package for either
that is well kept: what is needed of them are three system calls and a filter of a few lines."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all machines
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _GET_SECCOMP, _FILTER, _DROP_CAPABILITY = 38, 22, 21, 2, 24  # prctl(2)
_KEPT_CAPABILITY = 1  # CAP_DAC_OVERRIDE: root opens files of others, where Landlock lets it

_READ_FILE, _READ_DIR, _EXECUTE = 1 << 2, 1 << 3, 1 << 0
_WRITE_FILE, _TRUNCATE, _IOCTL = 1 << 1, 1 << 14, 1 << 15
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE, _REFER = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 13
_OF_FILES = _READ_FILE | _EXECUTE | _WRITE_FILE | _TRUNCATE | _IOCTL
_READS = _READ_FILE | _READ_DIR | _EXECUTE
_WRITES = _READS | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _REFER
"""No links, devices, sockets and pipes: nothing that leads out of a folder is made in it."""
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Version of Landlock -> how many rights on files it knows; later ones know no more of those used here."""
_NO_TCP, _NO_ABSTRACT_SOCKETS, _NO_SIGNALS = 0b11, 0b01, 0b10

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_NUMBERS = {
    # (the architecture's name in seccomp(2), numbers of the system calls that are refused)
    "x86_64": (
        0xC000003E,
        {
            "socket": 41,
            "ptrace": 101,
            "mount": 165,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "bpf": 321,
            "userfaultfd": 323,
            "io_uring_setup": 425,
            "pidfd_getfd": 438,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "socket": 198,
            "ptrace": 117,
            "mount": 40,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "unshare": 97,
            "perf_event_open": 241,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "bpf": 280,
            "userfaultfd": 282,
            "io_uring_setup": 425,
            "pidfd_getfd": 438,
        },
    ),
}

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Of this kernel; 0 where it has none, or has it switched off."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def missing() -> str | None:
    """Why processes cannot be confined here, or not in all ways, or None."""
    if not _filters():
        return f"no filter of system calls on {sys.platform} on {platform.machine()}"
    return None if landlock_version() else "this kernel has no Landlock (Linux 5.13 and later, unless switched off)"


def _filters() -> bool:
    return sys.platform == "linux" and platform.machine() in _NUMBERS and _libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def limit_files(reads: Iterable[str], writes: Iterable[str]) -> None:
    """Leave these files and folders, with what is in them, and a few devices; no TCP, and no signals to processes that
    are not confined with this one. What is not there is left out. Raises OSError."""
    version = landlock_version()
    rights = (1 << _KNOWN_RIGHTS.get(version, 16)) - 1
    attributes = struct.pack("QQQ", rights, _NO_TCP if version >= 4 else 0, _scopes(version))
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    granted = [*((path, _READS) for path in reads), *((path, _WRITES) for path in writes)]
    for path, wanted in [*granted, *((path, _DEVICE) for path in DEVICES)]:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not Path(path).is_dir():
            wanted &= _OF_FILES
        rule = struct.pack("=Qi", wanted & rights, handle)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0)))
        os.close(handle)
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)


def _scopes(version: int) -> int:
    return _NO_ABSTRACT_SOCKETS | _NO_SIGNALS if version >= 6 else 0


def limit_calls() -> None:
    """Refuse system calls that open sockets, or get around the rules for files or into other processes. Raises
    OSError."""
    architecture, refused = _NUMBERS[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ, BPF_JGE, BPF_RET
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # SECCOMP_RET_ALLOW, _ERRNO with EPERM, ENOSYS
    numbers = sorted(refused.values())
    lines = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, unknown), (load, 0, 0, 0)]
    lines += [(at_least, 0, 1, 0x40000000), (give, 0, 0, unknown)]  # x32, whose numbers are others
    lines += [(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    lines += [(give, 0, 0, allow), (give, 0, 0, refuse)]
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    text = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(text))
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(filter_, len(filter_)), 0, 0))


def limit_capabilities() -> None:
    """Of root, leave what opens files (capabilities(7)): CAP_PERFMON, for one, reads the memory of other processes.
    From the next `exec` on; who is not root has none."""
    if os.geteuid() == 0:
        number = 0
        while _libc.prctl(23, number, 0, 0, 0) >= 0:  # PR_CAPBSET_READ fails after the last one
            if number != _KEPT_CAPABILITY:
                _libc.prctl(_DROP_CAPABILITY, number, 0, 0, 0)  # fails in containers without that right
            number += 1


def limit_sizes(largest: int) -> None:
    """No file longer than so many bytes, and no core files."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    bound = largest if hard == resource.RLIM_INFINITY else min(largest, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main() -> None:
    told = json.loads(sys.argv[1])
    limit_sizes(told["bytes"])
    if landlock_version():
        limit_capabilities()
        limit_files(told["reads"], told["writes"])
    if _filters():
        limit_calls()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
